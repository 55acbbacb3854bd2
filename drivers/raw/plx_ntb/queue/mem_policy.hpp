// SPDX-License-Identifier: BSD-3-Clause
// How stores reach the peer: the memory policies of the hot path (doc/wire-protocol.md, section 7).
//
// Everything here and in the headers that know a policy lives in the namespace
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

/// What makes a word arrive after the bodies stored before it.
enum class Order {
    release,    ///< each word does: a store-release
    fence,      ///< body_fence() between bodies and words
    whole_line, ///< a line is one store, word included; other bytes need body_fence() before it
};

/// A policy says how bytes are stored through the window and how a published word is read.
///   copy        body bytes; nothing is known about their order but what `order` says
///   stream      a copy of any length; hint: what comes next is copied to @p next
///   non_temporal, non_temporal_fence
///               a copy of any length to the begin of a line, past this CPU's caches; after the
///               fence what follows arrives later, whatever `order` says
///   body        bytes 8 to 63 of a line, from registers
///   head, full_head, rest
///               a line, word included, that a later word() publishes (Order::release only)
///   body_fence  see Order
///   word        publishes 8 bytes; pairs with load() and is() at the other end
///   is          load(), compared
///   line        a whole line, which publishes itself
///   own         hint: the line will be stored to soon
///   own_later   hint: as many bytes as a stream() of @p n will be stored to behind it
///   flush       end of a burst: what was stored is on its way
/// Arrival of a word means: every copy() and body() that `order` puts before it is there.
template <class M>
concept MemPolicy = requires(std::byte *to, const std::byte *from, size_t n, uint64_t w,
                             const LineBegin &begin, Rest rest, const Body &body)
{
    requires std::same_as<decltype(M::order), const Order>;
    M::copy(to, from, n);
    M::stream(to, from, n, from);
    M::non_temporal(to, from, n);
    M::non_temporal_fence();
    M::body(to, body);
    M::head(to, body, w);
    M::full_head(to, begin, from);
    M::rest(to, from, rest, w);
    M::body_fence();
    M::word(to, w);
    M::line(to, from);
    M::own(from);
    M::own_later(from, n);
    M::flush();
    {
        M::load(from)
        } -> std::same_as<uint64_t>;
    {
        M::is(from, w)
        } -> std::same_as<bool>;
};

/// line() of policies that have no store of a whole line.
template <class M>
[[gnu::always_inline]] inline void body_then_word(std::byte *to, const std::byte *from)
{
    uint64_t word;
    __builtin_memcpy(&word, from, sizeof(word));
    M::copy(to + wire::cont_payload_offset, from + wire::cont_payload_offset,
            wire::cont_payload_bytes);
    M::body_fence();
    M::word(to, word);
}

[[gnu::always_inline]] inline std::atomic_ref<uint64_t> word_ref(const std::byte *at)
{
    return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t *>(const_cast<std::byte *>(at)));
}

/// Coherent memory. word() is a store-release: it pairs with the load-acquire of load(), so bodies
/// need no fence of their own, and ThreadSanitizer sees the edge.
struct Plain {
    /// Longest copy without prefetching for write (doc/decisions/008-mid-sizes.md).
    static constexpr size_t own_above = 2048;
    static constexpr Order order = Order::release;
    [[gnu::always_inline]] static void copy(std::byte *to, const std::byte *from, size_t n)
    {
        copy_bytes(to, from, n);
    }
    /// Prefetches lines for writing, so that the requests overlap; towards the end the lines of the
    /// next copy, so that it does not begin with a wait. Not for short copies: there the CPU's own
    /// prefetcher keeps more requests outstanding than these would leave it.
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
    [[gnu::always_inline]] static void non_temporal(std::byte *to, const std::byte *from, size_t n)
    {
        copy_non_temporal(to, from, n);
    }
    [[gnu::always_inline]] static void non_temporal_fence() { _mm_sfence(); }
    [[gnu::always_inline]] static void body(std::byte *line, const Body &b) { b.store(line); }
    [[gnu::always_inline]] static void own(const std::byte *line)
    {
        // By hand: without its flag the compiler makes a read prefetch of it.
        asm volatile("prefetchw %0" : : "m"(*line));
    }
    /// Into the second cache, which can wait for more lines than the first, and where a line that
    /// no other CPU holds comes to be owned. Not for copies that prefetch for writing by
    /// themselves (doc/decisions/033-frames-both-ends.md).
    [[gnu::always_inline]] static void own_later(const std::byte *from, size_t n)
    {
        if (n > own_above)
            return;
        constexpr size_t step = 4 * wire::line_bytes;
        for (size_t at = 0; at < n; at += step)
            for (size_t i = at; i < at + step; i += wire::line_bytes)
                __builtin_prefetch(from + i, 0, 2);
    }
    template <size_t Bytes>
    [[gnu::always_inline]] static void own_lines(const std::byte *from)
    {
        for (size_t i = 0; i < Bytes; i += wire::line_bytes)
            own(from + i);
    }
    [[gnu::always_inline]] static void body_fence() {}
    [[gnu::always_inline]] static void word(std::byte *to, uint64_t w)
    {
        word_ref(to).store(w, std::memory_order_release);
    }
    [[gnu::always_inline]] static void line(std::byte *to, const std::byte *from)
    {
        body_then_word<Plain>(to, from);
    }
    [[gnu::always_inline]] static void head(std::byte *to, const Body &b, uint64_t w)
    {
        b.store_with(to, w);
    }
    [[gnu::always_inline]] static void full_head(std::byte *to, const LineBegin &begin,
                                                 const std::byte *from)
    {
        store_full_head(to, begin, from);
    }
    [[gnu::always_inline]] static void rest(std::byte *to, const std::byte *from, Rest rest,
                                            uint64_t w)
    {
        store_rest(to, from, rest, w);
    }
    [[gnu::always_inline]] static void flush() {}
    [[gnu::always_inline]] static uint64_t load(const std::byte *from)
    {
        return word_ref(from).load(std::memory_order_acquire);
    }
    /// By hand one instruction, of which the compiler makes two if it is an atomic load; the
    /// aligned word is loaded whole either way, and nothing behind it is loaded earlier. The thread
    /// sanitizer has to see the atomic.
    [[gnu::always_inline]] static bool is(const std::byte *from, uint64_t w)
    {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
        bool same;
        asm volatile("cmpq %2, %1"
                     : "=@cce"(same)
                     : "m"(*reinterpret_cast<const uint64_t *>(from)), "r"(w)
                     : "memory");
        return same;
#else
        return load(from) == w;
#endif
    }
};

/// Write-combining memory: stores leave the core in any order and in pieces, so one store fence
/// lies between the bodies of a burst and its words, and one more pushes the words out.
struct WriteCombining : Plain {
    static constexpr Order order = Order::fence;
    [[gnu::always_inline]] static void own(const std::byte *) {}
    [[gnu::always_inline]] static void own_later(const std::byte *, size_t) {}
    [[gnu::always_inline]] static void stream(std::byte *to, const std::byte *from, size_t n,
                                              const std::byte *)
    {
        copy_bytes(to, from, n);
    }
    [[gnu::always_inline]] static void body_fence() { _mm_sfence(); }
    [[gnu::always_inline]] static void line(std::byte *to, const std::byte *from)
    {
        body_then_word<WriteCombining>(to, from);
    }
    [[gnu::always_inline]] static void flush() { _mm_sfence(); }
};

/// Write-combining memory on a CPU with MOVDIR64B: a line is one 64-byte store that arrives whole,
/// so it needs no fence of its own; data in receive buffers still do.
struct DirectStore : WriteCombining {
    static constexpr Order order = Order::whole_line;
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
