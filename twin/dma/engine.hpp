// SPDX-License-Identifier: BSD-3-Clause
// The engine of one DMA channel. It runs in the thread that accesses its registers: START walks the
// ring before the write returns, unless another thread is at it, which then goes on with it.
#ifndef PLX_TWIN_DMA_ENGINE_HPP
#define PLX_TWIN_DMA_ENGINE_HPP

#include "chip/chip.hpp"
#include "chip/dma_regs.hpp"
#include "dma/late.hpp"
#include "dma/transfer.hpp"

#include <pthread.h>

namespace plx::twin
{

enum class Fault;

/// A descriptor as it was read.
struct DmaDescriptor {
    uint64_t slot = 0; ///< bus address; 0: the block registers
    uint32_t words[4] = {};
    bool passed = false; ///< by the one behind it
};

struct Transfer {
    uint64_t src;
    uint64_t dst;
    uint32_t bytes;
    bool const_src;
    bool const_dst;
    /// What @p d asks for, if it is not the block registers.
    static Transfer of(const DmaDescriptor &d)
    {
        const auto address = [](uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; };
        const uint32_t *const w = d.words;
        return {address(dma_field::desc_src_hi.get(w[1]), w[3]),
                address(dma_field::desc_dst_hi.get(w[1]), w[2]), dma_field::desc_bytes.get(w[0]),
                dma_field::desc_const_src.get(w[0]) != 0, dma_field::desc_const_dst.get(w[0]) != 0};
    }
    /// What is left after @p done bytes, as far as it can be moved in one go; not nothing.
    DmaPiece rest(uint64_t done) const;
};

/// Happens once, after so many descriptors.
struct Countdown {
    static constexpr uint32_t off = ~uint32_t{0};
    uint32_t left = off;
    bool strikes();
};

struct DmaFaults {
    Countdown stall;
    Countdown hang;
    Countdown read_error;
    Countdown write_error;
    uint64_t link_loss = ~uint64_t{0};   ///< bytes through windows until the link goes down
    uint64_t pace = 0;                   ///< bytes a register access; 0: all at once
    uint32_t requester = Countdown::off; ///< in the place of the function's own
    /// Whether none strikes, whatever is moved.
    bool quiet() const;
};

class DmaChannel
{
public:
    /// The host's chip is chosen. Both outlive the channel.
    void open(DmaHost &host, Chip &chip, unsigned index);

    /// After a write to the channel's registers took effect. Without the host's lock.
    void written(uint32_t offset, uint32_t value);
    /// Before a read. Without the host's lock.
    void register_read();
    /// Something happened to the card. Without the host's lock.
    void card_changed() { serve_pending(); }
    /// @return 0; -EINVAL an argument that the fault does not have; -ENOMEM
    int fault(Fault fault, uint32_t argument);

private:
    static constexpr unsigned fetch_max = 256;
    /// Descriptors that wait for one another's data.
    static constexpr unsigned unsettled_max = 16;

    // engine.cpp
    void serve_pending();
    void serve();
    bool may_go_on(bool between);
    bool bus_master() const;
    void begin();
    void run();
    bool take_next();
    const DmaDescriptor *read_block();
    Transfer transfer() const;
    void put_off(const DmaWriteBack &done);
    void move();
    void count_link_loss(uint64_t moved);
    /// At what is open to the engine.
    void expire_direct() { source_.direct.trust = destination_.direct.trust = 0; }
    bool timeout_hangs() const;
    void fail(Fate fate);
    void hang();
    void complete(uint32_t result);
    void settle_now();
    void settle()
    {
        if (copier_.loose() || unsettled_count_ != 0)
            settle_now();
    }
    void halt(uint32_t status);
    void latch(uint32_t events);
    void forget();
    void function_reset();

    // ring.cpp
    /// A ring as registers have it now.
    struct Extent {
        uint64_t base;
        uint64_t end;
        uint64_t after(uint64_t slot) const;
    };
    uint64_t ring_base() const;
    Extent extent() const;
    bool at_stop(uint64_t slot) const;
    uint32_t *descriptor_at(uint64_t bus);
    bool find_ring_memory(uint64_t bus);
    bool fetch_one(uint64_t slot, bool reachable, DmaDescriptor *out);
    bool slack_answers(uint64_t end, unsigned descriptors);
    void fetch(uint64_t slot, const Extent &ring);
    void reorder();
    bool has_fetched(const Extent &ring);
    const DmaDescriptor *next_in_ring();
    bool is_usual() const;
    bool goes_on_as_usual(const std::atomic<uint32_t> *csr) const;
    bool move_usual(const DmaDescriptor &d, const Extent &ring, std::atomic<uint32_t> *csr);
    bool run_usual();
    void stop_at(uint64_t slot);
    void report(const DmaWriteBack &done);
    void write_back(const DmaWriteBack &done);
    void release_late(bool all);
    void store_back(const DmaWriteBack &done);

    const Switches &switches() const { return *switches_; }
    uint32_t reg(uint32_t offset) const { return get(*chip_, base_ + offset); }
    uint64_t reg64(uint32_t offset) const { return get64(*chip_, base_ + offset); }
    /// The channel's lock orders the engine's own accesses; who else reads needs the value alone.
    void set(uint32_t offset, uint32_t value)
    {
        chip_->csr[(base_ + offset) / 4].store(value, std::memory_order_release);
    }
    void set_bits(uint32_t offset, uint32_t bits) { change_bits(offset, bits, 0); }
    void clear_bits(uint32_t offset, uint32_t bits) { change_bits(offset, 0, bits); }
    void change_bits(uint32_t offset, uint32_t set, uint32_t cleared);
    bool hung() const { return (chip_->dma_state[index_].load() & dma_hung) != 0; }

    DmaHost *host_ = nullptr;
    const Switches *switches_ = nullptr;
    Chip *chip_ = nullptr;
    unsigned index_ = 0;
    uint32_t base_ = 0;
    uint16_t requester_ = 0;
    uint32_t resets_ = 0; ///< Chip::dma_resets as of the last look

    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    /// Counts what the engine has to look at, so that nothing is missed by one that is busy.
    std::atomic<uint64_t> requests_{0};
    std::atomic<bool> start_{false};
    std::atomic<bool> reset_{false};
    std::atomic<bool> rewritten_{false};   ///< ring registers, since the engine looked
    std::atomic<bool> pause_asked_{false}; ///< by the last write of CTRL
    /// Faults for which reads of registers matter.
    std::atomic<bool> watches_reads_{false};

    // ---- under the lock

    bool running_ = false; ///< work begun; shown as IN_PROGRESS
    bool aborted_ = false; ///< these three: answered
    bool stopped_ = false;
    bool paused_ = false;
    bool in_hand_ = false;  ///< *current_ is not complete
    uint64_t done_ = 0;     ///< bytes of current_
    uint64_t budget_ = 0;   ///< bytes left of this access
    uint64_t lap_left_ = 0; ///< descriptors of a START, where no write-back ends a lap
    /// block_ or one of fetched_, which stays while it is in hand: a copy of what was just stored
    /// in parts would wait for every store before it, those of the data before all.
    const DmaDescriptor *current_ = nullptr;
    DmaDescriptor block_;
    DmaDescriptor fetched_[fetch_max];
    unsigned fetched_count_ = 0;
    unsigned fetched_next_ = 0;
    bool fetch_failed_ = false;
    DmaCopier copier_;
    /// Moved, and to be reported behind their data. No answer, interrupt, end of work or loss of
    /// the link that the engine causes is shown before them.
    DmaWriteBack unsettled_[unsettled_max];
    unsigned unsettled_count_ = 0;
    DmaEnd source_;
    DmaEnd destination_;
    DmaRange ring_memory_;
    uint64_t memory_version_ = 0;
    DmaLate late_;
    DmaFaults faults_;
};

} // namespace plx::twin

#endif
