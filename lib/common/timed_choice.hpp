// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_COMMON_TIMED_CHOICE_HPP
#define NTB_COMMON_TIMED_CHOICE_HPP

#include <atomic>
#include <cstdint>

namespace ntb
{

/// Chooses between two ways to do the same work by the time that each takes itself: for work whose
/// cost its doer pays, such as stores to lines that another CPU holds. (What a way costs somebody
/// else, or later, needs more: drivers/raw/plx_ntb/queue/trial.hpp.)
///
/// Work comes in pieces of some units. Pieces are put together to blocks of one way, which alone
/// are judged, and now and then a look is taken at the other way: a block, or some where it may get
/// cheaper. Its cost is compared with that of the blocks before it, so that changes of the traffic
/// do not matter but in the middle of a long look.
///
/// One thread; others may read in_force().
class TimedChoice
{
public:
    /// Units of a block, at least.
    static constexpr std::uint64_t block_units = 256;
    /// Of the units, 1 / young_share are done the other way until so many blocks of it have
    /// confirmed the choice, afterwards 1 / old_share. A dear block counts as often as it is
    /// dearer.
    static constexpr std::uint64_t young_share = 50, old_share = 200;
    static constexpr unsigned young_samples = 8;
    /// Samples that are asked for: where they say that the other way saves a quarter, and where it
    /// saves 5 %.
    static constexpr unsigned plain_samples = 2, samples = 4;
    /// A look at way 0 that may get cheaper ends all the same where so many blocks each cost so
    /// many times what way 1 does.
    static constexpr unsigned hopeless_blocks = 8, hopeless = 4;

    /// What the cycles of a piece do not show.
    struct Unseen {
        /// What way 1 takes counts so often: it leaves work to somebody else.
        std::uint32_t left_by_1 = 1;
        /// Units of way 0, behind others of way 1, until it costs what it will: a look at it lasts
        /// as long, or until it is cheap.
        std::uint64_t begin_of_0 = 0;
    };
    /// Of stores through the caches (0) or past them (1), a line a unit, to memory that is written
    /// again and again. Past them the reader takes each line out of memory, which costs it what the
    /// writer saves and more; and through them the writer does so, until 8 MiB of what it writes
    /// are in its caches.
    static constexpr Unseen of_stores{2, std::uint64_t{8} << 20 >> 6};

    /// @param fixed  the way in force is never left
    explicit TimedChoice(unsigned in_force = 0, bool fixed = false)
        : TimedChoice(in_force, fixed, {1, 0})
    {
    }
    TimedChoice(unsigned in_force, bool fixed, Unseen unseen);

    /// How the next piece is to be done, 0 or 1.
    unsigned way() const { return way_; }
    /// Says that a piece took so long, done by way(). Long ones are better cut: one is done one
    /// way.
    /// @param cycles  of it alone
    void took(std::uint64_t units, std::uint64_t cycles)
    {
        units_ += units;
        cycles_ += cycles;
        if (units_ >= block_units)
            end_block();
    }
    unsigned in_force() const { return in_force_.load(std::memory_order_relaxed); }

private:
    void end_block();
    void follow(std::uint64_t cost);
    void look(std::uint64_t cost);
    bool may_get_cheaper(std::uint64_t relative) const;
    void judge(std::uint64_t cost, std::uint64_t relative);
    void rest(std::uint64_t relative);
    bool saves() const;

    std::uint64_t units_ = 0, cycles_ = 0; ///< of this block
    std::uint64_t until_other_;            ///< units until the next look at the other way
    std::uint64_t usual_ = 0; ///< cost of a unit by the way in force, scaled; 0: not known
    std::uint64_t charge_ = block_units; ///< units that the last look at the other way counts as
    std::uint64_t looked_ = 0;           ///< units of a look that goes on
    std::uint64_t paid_ = 0;             ///< units since the last look at the other way
    const Unseen unseen_;
    std::uint32_t hopeless_ = 0;           ///< blocks of the look, in a row
    std::uint32_t relative_[samples] = {}; ///< costs of the other way by that in force, the latest
    std::uint32_t taken_ = 0;              ///< of them, since the last choice
    std::uint8_t jumps_ = 0;               ///< blocks in a row whose cost was unusual
    std::uint8_t way_;
    bool fixed_;
    std::atomic<std::uint8_t> in_force_;
};

} // namespace ntb

#endif
