// SPDX-License-Identifier: BSD-3-Clause
// A copy past the caches.
#ifndef NTB_COPY_PAST_HPP
#define NTB_COPY_PAST_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace ntb
{

/// Whether this processor can: else it is a copy as any.
#if defined(__x86_64__)
inline constexpr bool can_copy_past = true;
#else
inline constexpr bool can_copy_past = false;
#endif

/// Copies by stores that leave no line in the caches of this CPU, but for what is no whole line at
/// either end. They are not in order with other stores before settle_past().
inline void copy_past(void *target, const void *source, std::size_t bytes)
{
#if defined(__x86_64__)
    constexpr std::size_t line = 64;
    auto *to = static_cast<std::byte *>(target);
    const auto *from = static_cast<const std::byte *>(source);
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
#else
    std::memcpy(target, source, bytes);
#endif
}

/// What was copied past the caches is visible before all that is stored from now on.
inline void settle_past()
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

} // namespace ntb

#endif
