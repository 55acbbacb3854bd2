// SPDX-License-Identifier: BSD-3-Clause
#include "dma/copy.hpp"

#include "copy_past.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace plx::twin
{

namespace
{
constexpr size_t word_bytes = sizeof(uint64_t);
// Up to here a copy is over before it is worth choosing a way.
constexpr size_t small_max = 256;
constexpr size_t line = 64;
// From here on it is worth knowing which way is cheaper. Longer copies are cut, so that little is
// tried at once.
constexpr size_t choose_from = 4096, step_bytes = 65536;

void store_bytes(uint8_t *to, const uint8_t *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        __atomic_store_n(to + i, from[i], __ATOMIC_RELEASE);
}

/// Each word is stored with release, which the thread sanitizer understands.
void copy_words(uint8_t *to, const uint8_t *from, size_t bytes)
{
    const size_t misaligned = reinterpret_cast<uintptr_t>(to) % word_bytes;
    const size_t head = misaligned == 0 ? 0 : word_bytes - misaligned;
    if (bytes < head + word_bytes)
        return store_bytes(to, from, bytes);
    store_bytes(to, from, head);
    size_t done = head;
    for (; bytes - done >= word_bytes; done += word_bytes) {
        uint64_t word;
        memcpy(&word, from + done, sizeof(word));
        __atomic_store_n(reinterpret_cast<uint64_t *>(to + done), word, __ATOMIC_RELEASE);
    }
    store_bytes(to + done, from + done, bytes - done);
}

// Earlier stores before later ones; pairs with the acquire load of a flag. gcc refuses
// the fence under the thread sanitizer, where only x86-64 is built: stores keep their order there,
// and the compiler does not move them across memmove().
void order_stores()
{
#ifndef __SANITIZE_THREAD__
    std::atomic_thread_fence(std::memory_order_release);
#endif
}

/// Whole lines, by vectors of @p bytes_each. Not by memcpy(), of whose constant size the compiler
/// makes a string instruction, which takes longer to begin than to copy some lines. @p long_ones
/// ask for the ownership of lines ahead, so that the requests overlap; at last for those behind the
/// end, as a stream goes on there with the next descriptor, which would begin with a wait. To ask
/// for a line that is not there does no harm.
template <size_t bytes_each, bool long_ones>
[[gnu::always_inline]] inline size_t copy_lines(uint8_t *to, const uint8_t *from, size_t bytes)
{
    typedef uint8_t Vector __attribute__((vector_size(bytes_each), aligned(1), may_alias));
    constexpr size_t ahead = 16 * line, vectors = line / bytes_each;
    size_t done = 0;
    for (; bytes - done >= line; done += line) {
        // By hand: without its flag the compiler makes a read prefetch of it.
        if constexpr (long_ones)
            asm volatile("prefetchw (%0)" : : "r"(to + done + ahead));
        Vector part[vectors];
        for (size_t i = 0; i < vectors; i++)
            part[i] = reinterpret_cast<const Vector *>(from + done)[i];
        for (size_t i = 0; i < vectors; i++)
            reinterpret_cast<Vector *>(to + done)[i] = part[i];
    }
    return done;
}

// A program may write what an engine reads: it gets either then, as from a card, and the thread
// sanitizer is not to call it a race.
[[gnu::no_sanitize("thread")]] size_t copy_lines_sse2(uint8_t *to, const uint8_t *from,
                                                      size_t bytes)
{
    return copy_lines<16, true>(to, from, bytes);
}
[[gnu::no_sanitize("thread"), gnu::target("avx2")]] size_t
copy_lines_avx2(uint8_t *to, const uint8_t *from, size_t bytes)
{
    return copy_lines<32, true>(to, from, bytes);
}

/// Flags and ring lines among them.
void copy_small(uint8_t *to, const uint8_t *from, size_t bytes)
{
    size_t done = 0;
#ifndef __SANITIZE_THREAD__
    order_stores();
    if (reinterpret_cast<uintptr_t>(to) % word_bytes == 0)
        done = copy_lines<16, false>(to, from, bytes);
#endif
    if (done != bytes)
        copy_words(to + done, from + done, bytes - done);
}

bool overlap(const uint8_t *to, const uint8_t *from, size_t bytes)
{
    const auto a = reinterpret_cast<uintptr_t>(to);
    const auto b = reinterpret_cast<uintptr_t>(from);
    return a < b + bytes && b < a + bytes;
}
} // namespace

DmaCopier::DmaCopier(unsigned way, bool fixed)
    : copy_lines_(__builtin_cpu_supports("avx2") ? copy_lines_avx2 : copy_lines_sse2),
      choice_(way, fixed, ntb::TimedChoice::of_stores)
{
}

void DmaCopier::settle()
{
    if (loose_)
        ntb::settle_past();
    loose_ = false;
}

void DmaCopier::copy_large(uint8_t *to, const uint8_t *from, size_t bytes)
{
    const size_t done = copy_lines_(to, from, bytes);
    memcpy(to + done, from + done, bytes - done);
}

void DmaCopier::copy_step(uint8_t *to, const uint8_t *from, size_t bytes)
{
    if (bytes < choose_from) {
        settle();
        return copy_large(to, from, bytes);
    }
    const bool past = choice_.way() != 0;
    if (!past)
        settle(); // the fence belongs to the copies before: their time, not this one's
    const uint64_t begin = __builtin_ia32_rdtsc();
    if (past) {
        ntb::copy_past(to, from, bytes);
        loose_ = true;
    } else {
        copy_large(to, from, bytes);
    }
    choice_.took(bytes / line, __builtin_ia32_rdtsc() - begin);
}

void DmaCopier::copy(uint8_t *to, const uint8_t *from, size_t bytes)
{
    if (bytes > small_max)
        return copy_long(to, from, bytes);
    settle();
    copy_small(to, from, bytes);
}

void DmaCopier::copy_long(uint8_t *to, const uint8_t *from, size_t bytes)
{
    order_stores();
    if (overlap(to, from, bytes)) {
        settle();
        memmove(to, from, bytes);
        return;
    }
    for (size_t done = 0; done < bytes; done += step_bytes)
        copy_step(to + done, from + done, std::min(bytes - done, step_bytes));
}

} // namespace plx::twin
