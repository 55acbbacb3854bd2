// SPDX-License-Identifier: BSD-3-Clause
// What the reader does with lines it has drained: a line that is clean, or no longer held here, is
// cheaper for the writer to take back. It changes timing only, never contents.
#ifndef PLX_QUEUE_CACHE_HINT_HPP
#define PLX_QUEUE_CACHE_HINT_HPP

#include "queue/copy.hpp"
#include "queue/state.hpp"

namespace plx::queue::PLX_VARIANT
{

/// The instructions by hand: a compiler flag for them would let the compiler use them elsewhere.
[[gnu::always_inline]] inline void drain_line(Drain how, const std::byte *line)
{
    const char *at = reinterpret_cast<const char *>(line);
    if (how == Drain::clwb)
        asm volatile("clwb %0" : : "m"(*at) : "memory");
    else if (how == Drain::clflushopt)
        asm volatile("clflushopt %0" : : "m"(*at) : "memory");
    else if (how == Drain::cldemote)
        asm volatile("cldemote %0" : : "m"(*at) : "memory");
}

/// Drains positions [from, to) of a ring; the choice is made once, outside the loops.
[[gnu::always_inline]] inline void drain_lines(Drain how, const RingPlace &ring, uint64_t from,
                                               uint64_t to)
{
    const auto loop = [&]<Drain How> {
        for (uint64_t at = from; at != to; at++)
            drain_line(How, ring.line(at));
    };
    switch (how) {
    case Drain::none:
        break;
    case Drain::clwb:
        loop.template operator()<Drain::clwb>();
        break;
    case Drain::clflushopt:
        loop.template operator()<Drain::clflushopt>();
        break;
    case Drain::cldemote:
        loop.template operator()<Drain::cldemote>();
        break;
    }
}

} // namespace plx::queue::PLX_VARIANT

#endif
