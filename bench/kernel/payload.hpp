// SPDX-License-Identifier: BSD-3-Clause
// HOT. What an application does to a message, the same for everything that is measured: the sender
// writes every word of it, the receiver reads every line. Inlined, so that a length that is known
// to the compiler stays known.
#ifndef BENCH_KERNEL_PAYLOAD_HPP
#define BENCH_KERNEL_PAYLOAD_HPP

#include "kernel/kernels.hpp"

namespace bench
{

/// Messages from here on are written and read by the kernel of this CPU, as the limit's are: what
/// the two differ in shall be the message path.
inline constexpr size_t kernel_from = 1024;
inline const Kernel &kernel = best_kernel();

/// Buffers must have room for whole lines: 1518 bytes are handled as 24 lines.
constexpr size_t lines_of(size_t bytes)
{
    return (bytes + line_bytes - 1) / line_bytes;
}

[[gnu::always_inline]] inline void write_payload(void *payload, size_t bytes, uint64_t value)
{
    if (bytes >= kernel_from) {
        kernel.fill_payload(static_cast<std::byte *>(payload), bytes, value);
        return;
    }
    uint64_t *words = static_cast<uint64_t *>(payload);
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
        words[i] = value;
}

/// @param whole  of the message that it is a piece of
/// @return the sum over the first word of every line
[[gnu::always_inline]] inline uint64_t read_payload(const void *payload, size_t bytes, size_t whole)
{
    if (whole >= kernel_from)
        return kernel.sum_payload(static_cast<const std::byte *>(payload), bytes);
    const uint64_t *words = static_cast<const uint64_t *>(payload);
    uint64_t sum = 0;
    for (size_t at = 0; at < bytes; at += line_bytes)
        sum += words[at / sizeof(uint64_t)];
    return sum;
}

[[gnu::always_inline]] inline uint64_t read_payload(const void *payload, size_t bytes)
{
    return read_payload(payload, bytes, bytes);
}

} // namespace bench

#endif
