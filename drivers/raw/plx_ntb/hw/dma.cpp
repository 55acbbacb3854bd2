// SPDX-License-Identifier: BSD-3-Clause
#include "dma.hpp"

#include <cerrno>

namespace plx::hw
{

namespace
{

using facts::Field;
using facts::detail::at;
using facts::detail::field_of;

// The channel's function, its configuration space first.
constexpr uint32_t pci_id = at("DMA_DEV_VEN_ID");
constexpr uint32_t command = facts::reg::pci_command_status; // the header is every function's: G
constexpr uint32_t dev_ctl2 = at("DMA_PCIE_DEV_CTL2");
constexpr uint32_t blk_first = at("DMA_BLK_SRC_LO"); // 200 to 210
constexpr uint32_t blk_last = at("DMA_BLK_XFER_SIZE");
constexpr uint32_t ring_low = at("DMA_RING_ADDR_LO");
constexpr uint32_t ring_high = at("DMA_RING_ADDR_HI");
constexpr uint32_t ring_next = at("DMA_RING_NEXT_LO");
constexpr uint32_t ring_count = at("DMA_RING_COUNT");
constexpr uint32_t ring_last = at("DMA_RING_LAST_LO");
constexpr uint32_t last_size = at("DMA_RING_LAST_SIZE");
constexpr uint32_t bandwidth = at("DMA_BANDWIDTH");
constexpr uint32_t prefetch = at("DMA_PREFETCH");
constexpr uint32_t ctrl = at("DMA_CTRL_STATUS");
constexpr uint32_t intr = at("DMA_INTR_CTRL_STATUS");
constexpr uint32_t pending = at("DMA_MAX_PENDING_READS");
constexpr uint32_t ram_threshold = at("DMA_STA_RAM_THRESH");

constexpr Field timeout_off = field_of("DMA_PCIE_DEV_CTL2", "CPL_TIMEOUT_DISABLE");
constexpr Field halt_reads = field_of("DMA_BANDWIDTH", "HALT_READS");
constexpr Field read_gap = field_of("DMA_BANDWIDTH", "READ_REQ_DELAY");
constexpr Field write_size = field_of("DMA_BANDWIDTH", "MAX_DST_WRITE_SIZE");
constexpr Field max_pending = field_of("DMA_MAX_PENDING_READS", "MAX_PENDING");
constexpr Field in_progress = field_of("DMA_CTRL_STATUS", "IN_PROGRESS");
constexpr Field graceful = field_of("DMA_CTRL_STATUS", "GRACEFUL_PAUSE");
constexpr Field abort_request = field_of("DMA_CTRL_STATUS", "ABORT");

// Sizes as 22C and 238 encode them.                                             LPD;SDK R
constexpr uint32_t size_128 = 1;
constexpr uint32_t size_256 = 2;

consteval uint32_t bit(std::string_view name)
{
    return field_of("DMA_CTRL_STATUS", name).mask();
}

/// What CTRL holds beside requests. Every write gives all of it, because a write that forgot it
/// would take the read size down to 64 bytes (E12) or leave what an EEPROM prefers (E13): reads of
/// 256 bytes as in production (EEP R), fast enough with 63 of them under way; relaxed ordering for
/// reads only, because a flag must not pass the data before it, nor a write-back; snooped; TC 0.
constexpr uint32_t ctrl_tuning = field_of("DMA_CTRL_STATUS", "MAX_SRC_XFER_SIZE").put(size_256) |
                                 bit("RO_DESC_READ") | bit("RO_DATA_READ");

/// Status bits, cleared by writing ones: LPD's 0x1700 in the low half (R), and that a header was
/// logged, which LPD's write of 16 bits leaves as it is.
constexpr uint32_t ctrl_status = bit("DESC_INVALID") | bit("PAUSE_DONE") | bit("ABORT_DONE") |
                                 bit("IMM_PAUSE_DONE") | bit("HEADER_LOG");

constexpr uint32_t mode_host_ring = 2; //                                        LPD;SDK;VCA R
constexpr uint32_t ctrl_start = ctrl_status | bit("WRITE_BACK_EN") | bit("START") |
                                field_of("DMA_CTRL_STATUS", "DESC_MODE").put(mode_host_ring);
static_assert((ctrl_start & 0xFFFF) == 0x174C, "what LPD writes");

constexpr uint32_t all_ones = ~uint32_t{0};
/// A step towards rest; the sources wait 1 s (LPD) and more, but the fence of a lost peer cannot.
constexpr uint64_t step_us = 5'000;
/// An engine whose process was killed may be finishing its ring when it is found.
constexpr unsigned open_tries = 20;
constexpr uint32_t open_wait_us = 500;

/// What production EEPROMs put into the memory between station and engine, for chips that show two
/// channels and for those that show four.                                              VCA-EEP R
struct Ram {
    uint32_t offset;
    uint32_t two;
    uint32_t four;
};
// The thresholds last: while they read 0, all of it is still to be written.
constexpr Ram ram[] = {{at("DMA_STA0_HDR_RAM"), 0x009800A0, 0x009800A0},
                       {at("DMA_STA0_PLD_RAM"), 0x00F80100, 0x00F80100},
                       {at("DMA_STA1_HDR_RAM"), 0x009800A0, 0x009800A0},
                       {at("DMA_STA1_PLD_RAM"), 0x00F80100, 0x00F80100},
                       {ram_threshold, 0x003A002E, 0x001D0018}};
/// The clocks between two read requests, likewise.                                     VCA-EEP R
constexpr uint32_t read_gap_two = 4;
constexpr uint32_t read_gap_four = 16;

int refuse(Refusal *why, int error, const char *what, uint64_t found, uint64_t expected = 0)
{
    if (why != nullptr)
        *why = {what, found, expected};
    return error;
}

} // namespace

bool DmaChannel::running() const
{
    return in_progress.get(io_.read32(ctrl)) != 0;
}

int DmaChannel::open(const RegIo &io, unsigned channels, Refusal *why)
{
    io_ = io;
    channels_ = channels;
    step_ = Step::none;
    cut_off_ = lost_ = false;
    const uint32_t found = io_.read32(pci_id);
    if (found == all_ones || found == 0)
        return refuse(why, -ENODEV, "a DMA function that answers", found);
    for (unsigned i = 0; running(); ++i) {
        if (i == open_tries)
            return refuse(why, -EIO,
                          "the engine was found in progress and does not end, as after a "
                          "completion time-out (E9): it needs a reset of the switch",
                          io_.read32(ctrl));
        io_.delay_us(open_wait_us);
    }
    return 0;
}

// E7: an engine found with what another driver left may never start; zeros first.        VCA R
void DmaChannel::clear_ring() const
{
    for (uint32_t offset = blk_first; offset <= blk_last; offset += 4)
        io_.write32(offset, 0);
    io_.write32(ring_low, 0);
    io_.write32(ring_high, 0);
    io_.write32(ring_count, 0);
    io_.write32(ring_next, 0);
}

void DmaChannel::set_bus_master(bool on) const
{
    // The upper half is status, cleared by ones: left as it is.
    const uint32_t now = io_.read32(command) & 0xFFFF;
    const uint32_t bits = facts::field::bus_master.mask();
    io_.write32(command, on ? now | bits | facts::field::mem_enable.mask() : now & ~bits);
}

void DmaChannel::tune() const
{
    // A completion that never comes would hang the engine for good (E9): it waits instead.
    io_.write32(dev_ctl2, io_.read32(dev_ctl2) | timeout_off.mask());
    // A function-level reset wipes what the EEPROM wrote (E11), which shows in the thresholds: that
    // they read as zero then is inferred.
    const bool wiped = io_.read32(ram_threshold) == 0;
    const bool two = channels_ <= 2;
    // 128 bytes is what every hop takes, and what production uses; the gap between reads divides
    // the station among its channels, and stays as an EEPROM has it.                 VCA-EEP R
    uint32_t pace = io_.read32(bandwidth) & ~(write_size.mask() | halt_reads.mask());
    if (wiped)
        pace = read_gap.set(pace, two ? read_gap_two : read_gap_four);
    io_.write32(bandwidth, pace | write_size.put(size_128));
    io_.write32(pending, max_pending.mask()); // the other field cleared, as SDK has it
    if (wiped)
        for (const Ram &r : ram)
            io_.write32(r.offset, two ? r.two : r.four);
}

int DmaChannel::program(const DmaRing &ring, Refusal *why)
{
    if (ring.bus % dma_ring_align != 0 || ring.bus >= dma_address_end || ring.slots == 0)
        return refuse(why, -EINVAL, "a ring on a page, below 2^48", ring.bus, dma_ring_align);
    if (cut_off_)
        return refuse(
            why, -EIO,
            "an engine that did not hang before: it was cut off, and needs a reset of the switch",
            0);
    const uint32_t found = io_.read32(ctrl);
    if (found == all_ones)
        return refuse(why, -ENODEV, "the DMA function does not answer any more", found);
    if (lost_)
        return refuse(why, -EIO, "an engine that was brought to rest since it was lost", found);
    if (in_progress.get(found) != 0)
        return refuse(why, -EIO, "an engine at rest", found);
    step_ = Step::none;

    io_.write32(ctrl, ctrl_tuning | ctrl_status);
    clear_ring();
    io_.write32(intr, 0xFFFF0000u); // every event masked, and forgotten
    tune();
    io_.write32(ring_low, static_cast<uint32_t>(ring.bus));
    io_.write32(ring_high, static_cast<uint32_t>(ring.bus >> 32));
    io_.write32(ring_next, static_cast<uint32_t>(ring.bus));
    io_.write32(ring_count, ring.slots);
    io_.write32(last_size, 0);
    io_.write32(prefetch, dma_prefetch);
    set_bus_master(true);
    const uint32_t kept = io_.read32(ring_low); // flushes
    if (kept != static_cast<uint32_t>(ring.bus))
        return refuse(why, -EIO, "a ring register that keeps what is written (E7)", kept,
                      static_cast<uint32_t>(ring.bus));
    return 0;
}

void DmaChannel::start() const
{
    io_.write32(ctrl, ctrl_tuning | ctrl_start);
}

DmaChannel::Status DmaChannel::status() const
{
    const uint32_t found = io_.read32(ctrl);
    if (found == all_ones)
        return {false, false, 0};
    return {true, in_progress.get(found) != 0, io_.read32(ring_last)};
}

/// The requests of 5.8; sources LPD, SDK and VCA (R). Statuses are cleared first, so that a done
/// bit is this request's.
void DmaChannel::take(Step step, uint64_t now_us)
{
    constexpr uint32_t keep = ctrl_tuning | bit("WRITE_BACK_EN") |
                              field_of("DMA_CTRL_STATUS", "DESC_MODE").put(mode_host_ring);
    step_ = step;
    since_us_ = now_us;
    if (step == Step::pause)
        io_.write32(ctrl, keep | ctrl_status | graceful.mask());
    if (step == Step::immediate) {
        io_.write32(ctrl, keep | ctrl_status | graceful.mask());
        io_.write32(bandwidth, io_.read32(bandwidth) | halt_reads.mask());
    }
    if (step == Step::abort)
        io_.write32(ctrl, keep | ctrl_status | abort_request.mask());
}

/// @return whether there is a step to wait for
bool DmaChannel::next_step(uint32_t found, uint64_t now_us)
{
    // A paused engine may go on showing that it is in progress (SDK R): only an abort ends that.
    constexpr uint32_t paused = bit("PAUSE_DONE") | bit("IMM_PAUSE_DONE");
    if (in_progress.get(found) == 0 || (step_ == Step::abort && (found & bit("ABORT_DONE")) != 0) ||
        step_ == Step::off)
        return false;
    if (step_ == Step::none)
        take(Step::pause, now_us);
    else if (step_ != Step::abort && (found & paused) != 0)
        take(Step::abort, now_us);
    else if (now_us - since_us_ >= step_us)
        take(static_cast<Step>(static_cast<uint8_t>(step_) + 1), now_us);
    return step_ != Step::off;
}

DmaChannel::Rest DmaChannel::rest(uint64_t now_us)
{
    if (cut_off_)
        return Rest::cut_off;
    const uint32_t found = io_.read32(ctrl);
    if (found == all_ones) {
        lost_ = true; // what comes back may be at work still
        step_ = Step::none;
        return Rest::gone;
    }
    if (next_step(found, now_us))
        return Rest::moving;
    // Here by a time-out of the abort, or because it is at rest.
    cut_off_ = step_ == Step::off;
    lost_ = false;
    step_ = Step::none;
    set_bus_master(false);
    clear_ring();
    if (!cut_off_)
        io_.write32(ctrl, ctrl_tuning | ctrl_status); // requests withdrawn: there is no ring left
    (void)io_.read32(ctrl);                           // flushes
    return cut_off_ ? Rest::cut_off : Rest::at_rest;
}

DmaShares dma_shares(const RegIo &chip, const Identity &id)
{
    DmaShares shares;
    const uint32_t first = facts::dma_base(0);
    const uint32_t found = chip.read32(first + pci_id);
    if (facts::family_facts(id.family).dma_channels == 0 || found == all_ones || found == 0)
        return shares;
    const uint32_t global = chip.read32(first + at("DMA_GLOBAL_CONTROL"));
    shares.assigned = chip.read32(first + at("DMA_PORT_ASSIGN"));
    const unsigned port = id.side == facts::Side::virt ? id.upstream_port : id.nt_port;
    for (unsigned channel = 0; channel < facts::dma_function_count; channel++) {
        if (!facts::dma_channel_shown(global, channel))
            continue;
        shares.shown++;
        shares.own += facts::dma_channel_port(shares.assigned, channel) == port ? 1 : 0;
    }
    return shares;
}

} // namespace plx::hw
