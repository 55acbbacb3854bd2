// SPDX-License-Identifier: BSD-3-Clause
// How stores reach the peer: the memory policies of the hot path (doc/wire-protocol.md, section 7).
//
// Everything here and in copy.hpp, producer.hpp and consumer.hpp lives in the namespace
// PLX_VARIANT: the same source is compiled for several instruction sets, and the linker must never
// give the code of one to a caller of the other.
#ifndef PLX_QUEUE_MEM_POLICY_HPP
#define PLX_QUEUE_MEM_POLICY_HPP

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "queue/copy.hpp"

namespace plx::queue::PLX_VARIANT
{

/// A policy says how bytes are stored through the window and how a published word is read.
///   copy    body bytes; nothing is known about their order until body_fence() or, for a policy
///   whose
///           word() releases, until that word
///   stream  a copy of any length; hint: what comes next is copied to @p next
///   body    bytes 8 to 63 of a line, from registers
///   line_body  the same from a line in memory
///   word    publishes 8 bytes; pairs with load() at the other end
///   line    a whole line, word included, in one store (only where whole_lines)
///   head, rest  a line, word included, that a later word() publishes (only where not fenced)
///   own     hint: the line will be stored to soon
///   flush   end of a burst: what was stored is on its way
/// fenced says that body_fence() is needed between bodies and words; else word() releases.
/// Arrival of a word means: every copy() and body() before the last body_fence() is there.
template <class M>
concept MemPolicy = requires(std::byte *to, const std::byte *from, size_t n, uint64_t w,
                             const Body &body)
{
    {
        M::whole_lines
        } -> std::convertible_to<bool>;
    M::copy(to, from, n);
    M::stream(to, from, n, from);
    M::body(to, body);
    M::body_fence();
    M::word(to, w);
    M::line(to, from);
    M::head(to, body, w);
    M::rest(to, from, uint32_t{}, w);
    M::own(from);
    M::flush();
    {
        M::load(from)
        } -> std::same_as<uint64_t>;
};

[[gnu::always_inline]] inline std::atomic_ref<uint64_t> word_ref(const std::byte *at)
{
    return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t *>(const_cast<std::byte *>(at)));
}

/// Coherent memory. word() is a store-release: it pairs with the load-acquire of load(), so bodies
/// need no fence of their own, and ThreadSanitizer sees the edge.
struct Plain {
    /// Longest copy for which no ownership is asked ahead (doc/decisions/008-mid-sizes.md).
    static constexpr size_t own_above = 2048;
    static constexpr bool whole_lines = false;
    static constexpr bool fenced = false;
    [[gnu::always_inline]] static void copy(std::byte *to, const std::byte *from, size_t n)
    {
        copy_bytes(to, from, n);
    }
    /// Asks for the ownership of lines ahead, so that the requests overlap; towards the end of the
    /// lines of the next copy, so that it does not begin with a wait. Not for short copies: there
    /// the CPU's own prefetcher has more requests on their way than these would leave it.
    [[gnu::always_inline]] static void stream(std::byte *to, const std::byte *from, size_t n,
                                              const std::byte *next)
    {
        constexpr size_t ahead = 16 * wire::line_bytes, step = 4 * wire::line_bytes;
        if (n > own_above) {
            for (; n >= ahead + step; n -= step, to += step, from += step) {
                own_lines<step>(to + ahead);
                copy_bytes(to, from, step);
            }
            for (; n >= step; n -= step, to += step, from += step, next += step) {
                own_lines<step>(next);
                copy_bytes(to, from, step);
            }
        }
        for (; n >= step; n -= step, to += step, from += step)
            copy_bytes(to, from, step);
        copy_bytes(to, from, n);
    }
    [[gnu::always_inline]] static void body(std::byte *line, const Body &b) { b.store(line); }
    [[gnu::always_inline]] static void own(const std::byte *line)
    {
        // By hand: without its flag the compiler makes a read prefetch of it.
        asm volatile("prefetchw %0" : : "m"(*line));
    }
    template <size_t Bytes>
    [[gnu::always_inline]] static void own_lines(const std::byte *from)
    {
        for (size_t i = 0; i < Bytes; i += wire::line_bytes)
            own(from + i);
    }
    [[gnu::always_inline]] static void line_body(std::byte *to, const std::byte *from)
    {
        copy_fixed<wire::cont_payload_bytes>(to + wire::cont_payload_offset,
                                             from + wire::cont_payload_offset);
    }
    [[gnu::always_inline]] static void body_fence() {}
    [[gnu::always_inline]] static void word(std::byte *to, uint64_t w)
    {
        word_ref(to).store(w, std::memory_order_release);
    }
    [[gnu::always_inline]] static void line(std::byte *, const std::byte *) {}
    [[gnu::always_inline]] static void head(std::byte *to, const Body &b, uint64_t w)
    {
        b.store_with(to, w);
    }
    [[gnu::always_inline]] static void rest(std::byte *to, const std::byte *from, uint32_t n,
                                            uint64_t w)
    {
        store_rest(to, from, n, w);
    }
    [[gnu::always_inline]] static void flush() {}
    [[gnu::always_inline]] static uint64_t load(const std::byte *from)
    {
        return word_ref(from).load(std::memory_order_acquire);
    }
};

/// Write-combining memory: stores leave the core in any order and in pieces, so one store fence
/// lies between the bodies of a burst and its words, and one more pushes the words out.
struct WriteCombining : Plain {
    static constexpr bool fenced = true;
    [[gnu::always_inline]] static void own(const std::byte *) {}
    [[gnu::always_inline]] static void stream(std::byte *to, const std::byte *from, size_t n,
                                              const std::byte *)
    {
        copy_bytes(to, from, n);
    }
    [[gnu::always_inline]] static void body_fence() { _mm_sfence(); }
    [[gnu::always_inline]] static void flush() { _mm_sfence(); }
};

/// Write-combining memory on a CPU with MOVDIR64B: a line is one 64-byte store that arrives whole,
/// so it needs no fence of its own; data in posted buffers still does.
struct DirectStore : WriteCombining {
    static constexpr bool whole_lines = true;
    [[gnu::always_inline]] static void line(std::byte *to, const std::byte *from)
    {
        // By hand: the compiler knows the instruction only under a flag that would let it use it
        // elsewhere too.
        asm volatile("movdir64b (%1), %0"
                     :
                     : "r"(to), "r"(from), "m"(*reinterpret_cast<const std::byte(*)[64]>(from))
                     : "memory");
    }
};

} // namespace plx::queue::PLX_VARIANT

#endif
