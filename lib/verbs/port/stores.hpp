// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_PORT_STORES_HPP
#define NTB_VERBS_PORT_STORES_HPP

#include <cstddef>
#include <cstdint>

#include "timed_choice.hpp"

namespace ntb::verbs
{

/// How long messages are stored to a ring whose reader may be on another CPU: through the caches,
/// or past them, whichever is cheaper here and now
/// (doc/decisions/069-stores-of-long-messages-to-a-ring.md). What the reader pays shows where the
/// ring is full, so that time counts. It shows a lap of the ring later: one way is kept for some
/// laps, and the first of them does not count.
class Stores
{
public:
    /// Shorter data go through the caches, and are not measured.
    static constexpr std::size_t least = 4096;
    static constexpr std::uint64_t laps = 4;
    /// Of a way past the caches, while the ring was never full: the reader's share is not seen.
    static constexpr std::uint64_t unseen = TimedChoice::of_stores.left_by_1;

    /// Once, before all else.
    void set_lap(std::uint64_t bytes) { lap_ = bytes; }
    /// What was to be stored has no room.
    void is_full()
    {
        if (full_since_ == 0)
            full_since_ = now();
    }
    void copy(std::byte *to, const std::byte *from, std::size_t bytes);
    /// What was stored is visible before all that is stored from now on.
    void settle();
    /// That so many bytes were stored within so many cycles, with the time without room.
    void took(std::uint64_t bytes, std::uint64_t cycles, bool was_full);
    /// 0: through the caches.
    unsigned way() const { return choice_.way(); }
    unsigned in_force() const { return choice_.in_force(); }

private:
    static std::uint64_t now();
    void end_stretch();

    TimedChoice choice_;
    std::uint64_t lap_ = 65536;
    std::uint64_t stored_ = 0; ///< since the way was chosen
    std::uint64_t counted_ = 0, cycles_ = 0;
    std::uint64_t full_since_ = 0; ///< 0: it is not
    bool was_full_ = false;
    bool loose_ = false; ///< stores past the caches are not ordered yet
};

} // namespace ntb::verbs

#endif
