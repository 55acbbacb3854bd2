// SPDX-License-Identifier: BSD-3-Clause
#include "dma/engine.hpp"

#include "chip/dma_regs.hpp"
#include "twin.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace plx::twin
{

namespace
{
constexpr uint64_t unlimited = ~uint64_t{0};

/// Takes what was asked for. It seldom was: an exchange alone would wait for all stores before it.
bool taken(std::atomic<bool> &asked)
{
    return asked.load() && asked.exchange(false);
}

} // namespace

DmaPiece Transfer::rest(uint64_t done) const
{
    constexpr uint64_t unit = 4; // moved at a time from or to an address that stays (I)
    const uint64_t left = bytes - done;
    if (!const_src && !const_dst)
        return {src + done, dst + done, left};
    const uint64_t inside = done % unit;
    return {src + (const_src ? inside : done), dst + (const_dst ? inside : done),
            std::min(left, unit - inside)};
}

bool DmaFaults::quiet() const
{
    return (stall.left & hang.left & read_error.left & write_error.left) == Countdown::off &&
           link_loss == unlimited && pace == 0;
}

bool Countdown::strikes()
{
    if (left == off)
        return false;
    if (left != 0) {
        left--;
        return false;
    }
    left = off;
    return true;
}

void DmaChannel::open(DmaHost &host, Chip &chip, unsigned index)
{
    host_ = &host;
    switches_ = &host.switches();
    chip_ = &chip;
    index_ = index;
    base_ = facts::dma_base(index);
    resets_ = chip_->dma_resets[index].load();
    // What an engine had in hand ended with its process, unless it hangs.
    if (host.owns_dma(index) && !hung())
        clear_bits(dma_reg::ctrl_status, dma_field::start.mask() | dma_field::in_progress.mask());
}

// ---- registers

/// All at once: others write these registers, too.
void DmaChannel::change_bits(uint32_t offset, uint32_t set, uint32_t cleared)
{
    settle();
    std::atomic<uint32_t> &word = chip_->csr[(base_ + offset) / 4];
    uint32_t old = word.load();
    while (!word.compare_exchange_weak(old, (old & ~cleared) | set)) {
    }
}

// ---- who runs it

void DmaChannel::written(uint32_t offset, uint32_t value)
{
    // Release: who finds the request that serve_pending() counts finds this.
    if (offset == dma_reg::ctrl_status && dma_field::start.get(value) != 0)
        start_.store(true, std::memory_order_release);
    if (offset == dma_reg::ctrl_status && dma_field::pause.get(value) != 0)
        pause_asked_.store(true);
    if (offset >= dma_reg::ring_lo && offset <= dma_reg::ring_count)
        rewritten_.store(true);
    if (offset == dma_reg::dev_ctl_status && dma_field::initiate_flr.get(value) != 0 &&
        dma_field::flr_capable.get(reg(dma_reg::dev_cap)) != 0)
        reset_.store(true);
    if (offset == dma_reg::ctrl_status || offset == dma_reg::bandwidth ||
        offset == dma_reg::dev_ctl_status || offset == facts::reg::pci_command_status)
        serve_pending();
}

void DmaChannel::register_read()
{
    if (!watches_reads_.load())
        return;
    pthread_mutex_lock(&lock_);
    late_.read_seen();
    pthread_mutex_unlock(&lock_);
    serve_pending();
}

// A thread that finds the lock taken has counted first; the holder compares the count after it
// unlocks.
void DmaChannel::serve_pending()
{
    requests_.fetch_add(1);
    uint64_t seen = 0;
    do {
        if (pthread_mutex_trylock(&lock_) != 0)
            return;
        seen = requests_.load();
        {
            DmaMemoryUsed used(host_->bus_memory());
            serve();
        }
        pthread_mutex_unlock(&lock_);
    } while (requests_.load() != seen);
}

void DmaChannel::serve()
{
    if (host_->card_gone())
        return forget();
    if (!host_->owns_dma(index_))
        return;
    // A reset of the function has changed registers alone.
    if (const uint32_t resets = chip_->dma_resets[index_].load(); resets != resets_) {
        resets_ = resets;
        forget();
    }
    requester_ = faults_.requester != Countdown::off ? static_cast<uint16_t>(faults_.requester)
                                                     : host_->dma_requester(index_);
    if (memory_version_ != host_->bus_memory().version) {
        source_ = {};
        destination_ = {};
        ring_memory_ = {};
        memory_version_ = host_->bus_memory().version;
    }
    if (taken(reset_))
        function_reset();
    if (!late_.empty())
        release_late(!late_.on());
    budget_ = faults_.pace == 0 ? unlimited : faults_.pace;
    if (hung())
        return;
    if (!bus_master())
        start_.store(false); // it is not remembered (I)
    // What was read ahead came from another ring. The one in hand is moved to its end.
    if (taken(rewritten_) && switches().dma_rewrite_drops)
        fetched_count_ = fetched_next_ = 0;
    if (may_go_on(!in_hand_) && taken(start_))
        begin();
    run();
}

// What the host asked for is answered once, when it is first seen.
/// @param between no descriptor is in hand
/// @return whether the engine may issue requests now
bool DmaChannel::may_go_on(bool between)
{
    const uint32_t ctrl = reg(dma_reg::ctrl_status);
    const bool abort = dma_field::abort.get(ctrl) != 0;
    const bool stop = dma_field::halt_reads.get(reg(dma_reg::bandwidth)) != 0;
    const bool pause = dma_field::pause.get(ctrl) != 0 && (between || paused_);
    uint32_t answers = 0;
    if (abort)
        forget();
    if (abort && !aborted_)
        answers |= dma_field::abort_done.mask();
    if (stop && !stopped_)
        answers |= dma_field::stop_done.mask();
    const bool again = taken(pause_asked_) && switches().dma_pause_repeats;
    if (pause && (!paused_ || again))
        answers |= dma_field::pause_done.mask();
    if (answers != 0)
        set_bits(dma_reg::ctrl_status, answers);
    aborted_ = abort;
    stopped_ = stop;
    paused_ = pause;
    return !abort && !stop && !pause && bus_master() && !reset_.load();
}

bool DmaChannel::bus_master() const
{
    return facts::field::bus_master.get(reg(facts::reg::pci_command_status)) != 0;
}

void DmaChannel::forget()
{
    start_.store(false);
    running_ = false;
    in_hand_ = false;
    fetched_count_ = fetched_next_ = 0;
    if (!hung())
        clear_bits(dma_reg::ctrl_status, dma_field::start.mask() | dma_field::in_progress.mask());
}

int DmaChannel::fault(Fault fault, uint32_t argument)
{
    int error = 0;
    pthread_mutex_lock(&lock_);
    switch (fault) {
    case Fault::dma_stall:
        faults_.stall.left = argument;
        break;
    case Fault::dma_hang:
        faults_.hang.left = argument;
        break;
    case Fault::dma_read_error:
        faults_.read_error.left = argument;
        break;
    case Fault::dma_write_error:
        faults_.write_error.left = argument;
        break;
    case Fault::dma_link_loss:
        error = argument == 0 ? -EINVAL : 0;
        faults_.link_loss = argument == Countdown::off ? unlimited : std::max(argument, 1u);
        break;
    case Fault::dma_pace:
        faults_.pace = argument;
        break;
    case Fault::dma_requester:
        error = argument > UINT16_MAX && argument != Countdown::off ? -EINVAL : 0;
        faults_.requester = error == 0 ? argument : faults_.requester;
        source_.direct = destination_.direct = {}; // were another requester's
        break;
    case Fault::dma_late:
        error = late_.set(argument);
        break;
    default:
        error = -ENOTSUP;
        break;
    }
    watches_reads_.store(late_.on() || faults_.pace != 0);
    pthread_mutex_unlock(&lock_);
    serve_pending();
    return error;
}

// E11
void DmaChannel::function_reset()
{
    late_.drop();
    host_->reset_dma(index_, hung() && !switches().dma_flr_revives);
    forget();
}

void DmaChannel::begin()
{
    const uint32_t mode = dma_field::mode.get(reg(dma_reg::ctrl_status));
    if (running_ && !switches().dma_restart_harmless) {
        in_hand_ = false;
        set(dma_reg::ring_next, static_cast<uint32_t>(ring_base()));
    }
    fetched_count_ = fetched_next_ = 0; // read again what was not valid before
    if (mode != dma_mode_host_ring && mode != dma_mode_block)
        return;
    running_ = true;
    lap_left_ = reg(dma_reg::ring_count);
    set_bits(dma_reg::ctrl_status, dma_field::start.mask() | dma_field::in_progress.mask());
    if (mode == dma_mode_host_ring && (chip_->dma_state[index_].load() & dma_ran) == 0)
        chip_->dma_state[index_].fetch_or(dma_ran);
}

void DmaChannel::run()
{
    while (running_ && budget_ != 0 && !hung() && may_go_on(!in_hand_))
        if (in_hand_ || (!run_usual() && take_next()))
            move();
    settle();
}

// ---- one descriptor

bool DmaChannel::take_next()
{
    const bool block = dma_field::mode.get(reg(dma_reg::ctrl_status)) == dma_mode_block;
    const DmaDescriptor *const next = block ? read_block() : next_in_ring();
    if (next == nullptr)
        return false;
    current_ = next;
    done_ = 0;
    in_hand_ = true;
    if (faults_.hang.strikes())
        hang();
    else if (faults_.read_error.strikes())
        complete(dma_field::done_read_failed.mask());
    else if (faults_.write_error.strikes())
        complete(dma_field::done_write_failed.mask());
    return in_hand_ && !hung();
}

const DmaDescriptor *DmaChannel::read_block()
{
    block_.words[0] = reg(dma_reg::block_size);
    if (dma_field::desc_valid.get(block_.words[0]) != 0)
        return &block_;
    halt(dma_field::invalid.mask());
    return nullptr;
}

Transfer DmaChannel::transfer() const
{
    Transfer t = Transfer::of(*current_);
    if (current_->slot == 0) {
        t.src = reg64(dma_reg::block_src_lo);
        t.dst = reg64(dma_reg::block_dst_lo);
    }
    return t;
}

/// Moves what one way serves of the descriptor in hand, and completes it when that was the rest.
void DmaChannel::move()
{
    const Transfer t = transfer();
    Fate fate = Fate::moved;
    uint64_t moved = 0;
    if (done_ < t.bytes) {
        DmaPiece piece = t.rest(done_);
        piece.bytes = std::min({piece.bytes, budget_, faults_.link_loss});
        fate = dma_move(*host_, copier_, source_, destination_, requester_, piece, &moved);
        if (fate == Fate::write_refused && !switches().dma_refused_writes_fail) {
            fate = Fate::moved; // posted: no completion reports it to the engine
            moved = piece.bytes;
        }
    }
    done_ += moved;
    budget_ -= std::max<uint64_t>(std::min(moved, budget_), 1);
    if (fate != Fate::moved)
        fail(fate);
    else if (done_ == t.bytes)
        complete(dma_field::done_success.mask());
    count_link_loss(moved);
}

void DmaChannel::count_link_loss(uint64_t moved)
{
    if (faults_.link_loss == unlimited || (!crosses(source_) && !crosses(destination_)))
        return;
    faults_.link_loss -= std::min(moved, faults_.link_loss);
    if (faults_.link_loss != 0)
        return;
    faults_.link_loss = unlimited;
    settle(); // what was moved before the link is lost is reported before it
    host_->drop_link();
    expire_direct();
}

// E9: whether a completion that does not come hangs it.
bool DmaChannel::timeout_hangs() const
{
    const bool waits = dma_field::timeout_off.get(reg(dma_reg::dev_ctl2)) != 0;
    return switches().dma_timeout_hangs && !waits;
}

void DmaChannel::fail(Fate fate)
{
    const bool read = fate == Fate::read_refused || fate == Fate::read_lost;
    if (fate == Fate::card_gone)
        forget();
    else if (switches().dma_errors_hang || (fate == Fate::read_lost && timeout_hangs()))
        hang();
    else
        complete(read ? dma_field::done_read_failed.mask() : dma_field::done_write_failed.mask());
}

// In progress for good: nothing but a reset of the chip ends it.
void DmaChannel::hang()
{
    settle();
    chip_->dma_state[index_].fetch_or(dma_hung);
}

void DmaChannel::complete(uint32_t result)
{
    const bool failed = result != dma_field::done_success.mask();
    const bool interrupts = dma_field::desc_interrupt.get(current_->words[0]) != 0;
    const bool block = current_->slot == 0;
    const bool stop = !block && at_stop(current_->slot);
    const DmaWriteBack done{current_->slot, static_cast<uint32_t>(done_) | result, 0};
    in_hand_ = false;
    if (copier_.loose() && !failed && !interrupts && !block && !stop && !late_.on())
        return put_off(done);
    settle();
    set(dma_reg::ring_last_size, static_cast<uint32_t>(done_));
    if (failed)
        set_bits(dma_reg::ctrl_status, dma_field::header_log.mask());
    if (failed || interrupts)
        latch((failed ? dma_field::error.mask() : 0) |
              (interrupts ? dma_field::descriptor_done.mask() : 0));
    if (block) {
        set(dma_reg::block_size, current_->words[0] & ~dma_field::desc_valid.mask());
        return halt(0);
    }
    report(done);
    if (stop)
        halt(0);
}

void DmaChannel::put_off(const DmaWriteBack &done)
{
    if (unsettled_count_ == unsettled_max)
        settle();
    unsettled_[unsettled_count_++] = done;
}

/// One wait for the data of some descriptors.
void DmaChannel::settle_now()
{
    copier_.settle();
    const unsigned count = std::exchange(unsettled_count_, 0);
    for (unsigned i = 0; i < count; i++) {
        const DmaWriteBack &done = unsettled_[i];
        set(dma_reg::ring_last_size, dma_field::desc_bytes.get(done.first_word));
        report(done);
    }
}

/// The end of work: there is nothing to go on with until the next START.
void DmaChannel::halt(uint32_t status)
{
    running_ = false;
    change_bits(dma_reg::ctrl_status, status,
                dma_field::start.mask() | dma_field::in_progress.mask());
    const uint32_t intr = reg(dma_reg::intr_ctrl_status);
    if ((status & dma_field::invalid.mask()) != 0 && dma_field::invalid_enable.get(intr) != 0)
        latch(dma_field::invalid_descriptor.mask());
}

// Of a write-back that is late the event is first (E10).
void DmaChannel::latch(uint32_t events)
{
    set_bits(dma_reg::intr_ctrl_status, events);
    host_->dma_event();
}

} // namespace plx::twin
