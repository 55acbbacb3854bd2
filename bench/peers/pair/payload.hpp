// SPDX-License-Identifier: BSD-3-Clause
// The messages of all that is compared, beside what bench/kernel/payload.hpp says of them.
#ifndef BENCH_PEERS_PAIR_PAYLOAD_HPP
#define BENCH_PEERS_PAIR_PAYLOAD_HPP

#include "kernel/payload.hpp"

#include <algorithm>

namespace peers
{

using bench::kernel;
using bench::line_bytes;
using bench::lines_of;
using bench::read_payload;
using bench::write_payload;

inline constexpr uint64_t bound_ns = 15000000000u; ///< everything ends by then
inline constexpr unsigned most_burst = 32;

/// Messages per burst: 32, or what 64 KiB hold.
constexpr unsigned burst_of(size_t bytes)
{
    return static_cast<unsigned>(std::clamp<size_t>(65536 / bytes, 1, most_burst));
}

/// What links have in common whose messages are no mbufs.
class PayloadLink
{
public:
    void use(size_t bytes) { m_bytes = bytes; }
    uint64_t sum_of(uint64_t, uint64_t values) const { return values * lines_of(m_bytes); }

protected:
    size_t m_bytes = 0;
};

} // namespace peers

#endif
