// SPDX-License-Identifier: BSD-3-Clause
#include "dma/copy.hpp"

#include <atomic>
#include <cstring>

namespace plx::twin
{

namespace
{
constexpr size_t word_bytes = sizeof(uint64_t);
// Up to here each word is stored with release: flags and ring lines are that small. It is also
// what the thread sanitizer understands.
constexpr size_t small_max = 256;

void store_bytes(uint8_t *to, const uint8_t *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        __atomic_store_n(to + i, from[i], __ATOMIC_RELEASE);
}

void copy_small(uint8_t *to, const uint8_t *from, size_t bytes)
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

/// In steps, each of which asks for the ownership of lines ahead of it, so that the requests
/// overlap; at last for those behind the end, as a stream goes on there with the next descriptor,
/// which would begin with a wait. To ask for a line that is not there does no harm.
void copy_large(uint8_t *to, const uint8_t *from, size_t bytes)
{
    constexpr size_t line = 64;
    constexpr size_t step = 8 * line;
    constexpr size_t ahead = 16 * line;
    for (; bytes >= step; to += step, from += step, bytes -= step) {
        for (size_t at = ahead; at < ahead + step; at += line)
            // By hand: without its flag the compiler makes a read prefetch of it.
            asm volatile("prefetchw (%0)" : : "r"(to + at));
        memcpy(to, from, step);
    }
    memcpy(to, from, bytes);
}

bool overlap(const uint8_t *to, const uint8_t *from, size_t bytes)
{
    const auto a = reinterpret_cast<uintptr_t>(to);
    const auto b = reinterpret_cast<uintptr_t>(from);
    return a < b + bytes && b < a + bytes;
}
} // namespace

void dma_copy(uint8_t *to, const uint8_t *from, size_t bytes)
{
    if (bytes <= small_max)
        return copy_small(to, from, bytes);
    order_stores();
    if (overlap(to, from, bytes))
        memmove(to, from, bytes);
    else
        copy_large(to, from, bytes);
}

} // namespace plx::twin
