// SPDX-License-Identifier: BSD-3-Clause
#include "port/stores.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace ntb::verbs
{
namespace
{

constexpr std::size_t line = 64;

#if defined(__x86_64__)

// A fence has to order these stores before later ones.
void copy_past(std::byte *to, const std::byte *from, std::size_t bytes)
{
    const std::size_t head = std::min(bytes, -reinterpret_cast<std::uintptr_t>(to) % line);
    std::memcpy(to, from, head);
    to += head;
    from += head;
    for (bytes -= head; bytes >= line; to += line, from += line, bytes -= line) {
        __m128i part[line / sizeof(__m128i)];
        std::memcpy(part, from, line);
        for (std::size_t i = 0; i < std::size(part); ++i)
            _mm_stream_si128(reinterpret_cast<__m128i *>(to) + i, part[i]);
    }
    std::memcpy(to, from, bytes);
}

#endif

} // namespace

void Stores::copy(std::byte *to, const std::byte *from, std::size_t bytes)
{
#if defined(__x86_64__)
    if (bytes >= least) {
        const bool was_full = full_since_ != 0;
        const std::uint64_t begin = was_full ? std::exchange(full_since_, 0) : now();
        if (choice_.way() != 0) {
            copy_past(to, from, bytes);
            loose_ = true;
        } else {
            std::memcpy(to, from, bytes);
        }
        took(bytes, now() - begin, was_full);
        return;
    }
#endif
    std::memcpy(to, from, bytes);
}

void Stores::settle()
{
#if defined(__x86_64__)
    if (loose_)
        _mm_sfence();
    loose_ = false;
#endif
}

void Stores::took(std::uint64_t bytes, std::uint64_t cycles, bool was_full)
{
    stored_ += bytes;
    if (stored_ <= lap_)
        return;
    counted_ += bytes;
    cycles_ += cycles;
    was_full_ = was_full_ || was_full;
    if (stored_ >= laps * lap_)
        end_stretch();
}

// One division in some laps.
void Stores::end_stretch()
{
    const std::uint64_t factor = choice_.way() != 0 && !was_full_ ? unseen : 1;
    choice_.took(TimedChoice::block_units,
                 factor * cycles_ * (TimedChoice::block_units * line) / counted_);
    stored_ = counted_ = cycles_ = 0;
    was_full_ = false;
}

std::uint64_t Stores::now()
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 1;
#endif
}

} // namespace ntb::verbs
