// SPDX-License-Identifier: BSD-3-Clause
// LinkDevice (link/link.hpp) of a device: registers, memory window, hello, events.
#include "device/device.hpp"

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <rte_cycles.h>

#include <sys/random.h>

#include "sync/clock.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

/// Words of shared memory, one atomic access each: the peer may write at the same time.
void copy_words(uint64_t *to, const volatile uint64_t *from, size_t words)
{
    for (size_t i = 0; i < words; ++i)
        to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
}

rte_pmd_plx_ntb_state public_state(LinkState state)
{
    switch (state) {
    case LinkState::stopped:
        return RTE_PMD_PLX_NTB_STOPPED;
    case LinkState::waiting:
        return RTE_PMD_PLX_NTB_WAITING;
    case LinkState::refused:
        return RTE_PMD_PLX_NTB_REFUSED;
    case LinkState::connected:
        return RTE_PMD_PLX_NTB_CONNECTED;
    case LinkState::silent:
        return RTE_PMD_PLX_NTB_SILENT;
    case LinkState::closing:
        return RTE_PMD_PLX_NTB_CLOSING;
    case LinkState::losing:
    case LinkState::fencing:
    case LinkState::stopping:
        break;
    }
    return RTE_PMD_PLX_NTB_FENCING;
}

} // namespace

uint64_t Device::now_us()
{
    return timer_us();
}

uint64_t Device::random()
{
    uint64_t value = 0;
    // Seeds keep late lines of an old epoch from being valid. The clock is the fallback.
    if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value))
        value = wire::mix(rte_get_timer_cycles() + id());
    return value;
}

bool Device::reachable(const char **why)
{
    // Before any register: on the twin a register access may wait for the revocation of memory from
    // a dead peer, and the report of its end must not.
    if (!platform_.ops->peer_present(platform_.ctx)) {
        *why = "no process is at the other end of the cable";
        return false;
    }
    uint32_t errors = 0;
    hw::LinkStatus status;
    *why = chip_.identity().side == facts::Side::virt
               ? "the chip does not answer"
               : "the chip does not answer: the link is down, or the card gone";
    // The status first: a change after it was read is left to the next tick.
    if (chip_.link_status(&status) != 0 || chip_.link_errors_take(&errors) != 0 ||
        (chip_silent_ && take_over() != 0)) {
        chip_silent_ = true;
        return false;
    }
    chip_silent_ = false;
    // A chip that missed writes of a call was gone for a moment, which no tick has seen.
    const bool changed =
        chip_.behind_record() || (errors & facts::field::err_link_change.mask()) != 0;
    // E3: any change of the link may have reset the link side.
    if (changed && chip_.program_all() != 0)
        return false;
    // Stores in flight during a link loss, however short, are lost: a ring with a missing line
    // would stop for ever without a report.
    *why = status.up ? "the link has changed" : "the link is down";
    return status.up && !changed;
}

/// A chip that did not answer for a while may have lost power: it is initialized as at probe. Its
/// exposed ranges are restored from the driver's record.
int Device::take_over()
{
    const int rc = chip_.start();
    return rc != 0 ? rc : chip_.link_enable();
}

int Device::open_window()
{
    const hw::Piece whole{block_.bus, block_.bytes};
    const bool in_pieces = block_.pieces != nullptr;
    hw::Refusal why;
    const int rc = chip_.window_set(hw::Chip::data_window, in_pieces ? block_.pieces : &whole,
                                    in_pieces ? block_.piece_count : 1, hw::rights_all, &why);
    chip_silent_ = chip_silent_ || rc == -ENODEV;
    if (rc != 0)
        PLX_LOG(ERR, "%s: the peer's window cannot show 0x%" PRIx64 " + 0x%zx: %s\n", name_,
                block_.bus, block_.bytes, rc == -EINVAL ? why.what : "the chip does not answer");
    else
        exposed_.opened(block_.bytes);
    return rc;
}

/// Closes our registers to the peer: the protocol does not need them.
void Device::shut_registers()
{
    if (options_.peer_csr == PeerCsr::closed && chip_.set_peer_csr(false) != 0)
        PLX_LOG(ERR, "%s: the chip does not answer: the peer may still reach its registers\n",
                name_);
}

bool Device::fence()
{
    // A chip that does not answer may still pass stores of the peer: nothing is reused until it
    // confirms that the peer's window is closed.
    if (chip_.window_clear(hw::Chip::data_window) != 0) {
        chip_silent_ = true;
        return false;
    }
    exposed_.closed();
    if (options_.peer_csr == PeerCsr::closed && chip_.set_peer_csr(true) != 0) {
        chip_silent_ = true;
        return false;
    }
    ++counts_.fences;
    close_queues();
    // The last peer's hello must not be taken for the next one's.
    std::memset(block_.base, 0, wire::page_bytes);
    return true;
}

wire::Hello Device::read_hello()
{
    uint64_t words[sizeof(wire::Hello) / 8];
    copy_words(words, reinterpret_cast<const uint64_t *>(block_.base + wire::hello_offset),
               std::size(words));
    return std::bit_cast<wire::Hello>(words);
}

uint64_t Device::read_heartbeat()
{
    uint64_t word = 0;
    copy_words(&word, reinterpret_cast<const uint64_t *>(block_.base + wire::heartbeat_offset), 1);
    return word;
}

/// Confirmations are stored by the peer as it receives. Messages that lie in the ring may be older
/// than its death: only one that found no room before the ring was emptied once is news.
uint64_t Device::heard()
{
    uint64_t all = 0;
    for (unsigned q = 0; q < queues_open_; ++q) {
        all += queue::tx_confirmation(queues_[q].tx.state);
        all += queue::rx_stats(queues_[q].rx.state).messages / geometry_.ring_lines;
    }
    return all;
}

void Device::write_hello(const wire::Hello &hello)
{
    const auto words = std::bit_cast<std::array<uint64_t, sizeof(hello) / 8>>(hello);
    auto *to = reinterpret_cast<uint64_t *>(platform_.window + wire::hello_offset);
    // In any order: the reader detects a torn hello by its CRC.
    for (size_t i = 0; i < words.size(); ++i)
        __atomic_store_n(to + i, words[i], __ATOMIC_RELEASE);
}

void Device::write_heartbeat(uint64_t word)
{
    auto *to = reinterpret_cast<uint64_t *>(platform_.window + wire::heartbeat_offset);
    __atomic_store_n(to, word, __ATOMIC_RELEASE);
}

void Device::report(LinkEvent event)
{
    rte_pmd_plx_ntb_event reported = RTE_PMD_PLX_NTB_EVENT_CONNECTED;
    switch (event) {
    case LinkEvent::connected:
        ++counts_.connects;
        shut_registers();
        PLX_LOG(NOTICE, "%s: connected, %u queue pairs\n", name_, queues_open_);
        break;
    case LinkEvent::silent:
        ++counts_.silences;
        reported = RTE_PMD_PLX_NTB_EVENT_SILENT;
        break;
    case LinkEvent::alive:
        reported = RTE_PMD_PLX_NTB_EVENT_ALIVE;
        break;
    case LinkEvent::lost:
        ++counts_.losses;
        reported = RTE_PMD_PLX_NTB_EVENT_LOST;
        break;
    case LinkEvent::closing:
        reported = RTE_PMD_PLX_NTB_EVENT_CLOSING;
        break;
    case LinkEvent::refused:
        ++counts_.refusals;
        reported = RTE_PMD_PLX_NTB_EVENT_REFUSED;
        break;
    }
    char reason[sizeof(rte_pmd_plx_ntb_link::why)]; // the callback may stop the device
    std::snprintf(reason, sizeof(reason), "%s", link_.why());
    if (event_fn_ != nullptr)
        event_fn_(id(), reported, event_arg_);
    sleepers_.wake_all();
    // Afterwards: a log may keep its writer waiting.
    if (event == LinkEvent::lost)
        PLX_LOG(NOTICE, "%s: lost: %s\n", name_, reason);
    else if (event == LinkEvent::refused)
        PLX_LOG(ERR, "%s: refused: %s\n", name_, reason);
}

void Device::explain(const char *why)
{
    PLX_LOG(INFO, "%s: %s\n", name_, why);
}

void Device::set_callback(rte_pmd_plx_ntb_event_fn fn, void *arg)
{
    lock();
    event_fn_ = fn;
    event_arg_ = arg;
    unlock();
}

void Device::link_info(rte_pmd_plx_ntb_link *out)
{
    *out = {};
    hw::LinkStatus status;
    if (!closed_ && chip_.link_status(&status) == 0) {
        out->speed = status.speed;
        out->width = status.width;
    }
    lock();
    out->state = public_state(link_.state());
    if (is_connected(link_.state())) {
        out->peer_epoch = link_.peer().epoch;
        out->peer_max_message = link_.peer().max_message;
        out->queues = queues_open_;
    }
    std::snprintf(out->why, sizeof(out->why), "%s", link_.why());
    unlock();
}

} // namespace plx::pmd
