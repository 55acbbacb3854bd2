// SPDX-License-Identifier: BSD-3-Clause
// Cache hints on consumed lines: a line that is clean, or no longer in the reader's cache, is
// cheaper for the writer to get back. They change timing only, never contents.
#ifndef PLX_QUEUE_CACHE_HINT_HPP
#define PLX_QUEUE_CACHE_HINT_HPP

#include "queue/copy.hpp"
#include "queue/state.hpp"

namespace plx::queue::PLX_VARIANT
{

/// The instructions by hand: a compiler flag for them would let the compiler use them elsewhere.
[[gnu::always_inline]] inline void hint_line(CacheHint how, const std::byte *line)
{
    const char *at = reinterpret_cast<const char *>(line);
    if (how == CacheHint::clwb)
        asm volatile("clwb %0" : : "m"(*at) : "memory");
    else if (how == CacheHint::clflushopt)
        asm volatile("clflushopt %0" : : "m"(*at) : "memory");
    else if (how == CacheHint::cldemote)
        asm volatile("cldemote %0" : : "m"(*at) : "memory");
}

/// Gives the hint for positions [from, to) of a ring; the choice is made once, outside the loops.
[[gnu::always_inline]] inline void hint_lines(CacheHint how, const RingPlace &ring, uint64_t from,
                                              uint64_t to)
{
    const auto loop = [&]<CacheHint How> {
        for (uint64_t at = from; at != to; at++)
            hint_line(How, ring.line(at));
    };
    if (how == CacheHint::none) [[likely]]
        return;
    switch (how) {
    case CacheHint::none:
        break;
    case CacheHint::clwb:
        loop.template operator()<CacheHint::clwb>();
        break;
    case CacheHint::clflushopt:
        loop.template operator()<CacheHint::clflushopt>();
        break;
    case CacheHint::cldemote:
        loop.template operator()<CacheHint::cldemote>();
        break;
    }
}

} // namespace plx::queue::PLX_VARIANT

#endif
