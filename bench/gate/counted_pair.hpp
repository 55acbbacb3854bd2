// SPDX-License-Identifier: BSD-3-Clause
// Two endpoints of one process, joined by a cable, and mbufs to send: what instructions are counted
// on. One thread plays both hosts, so that each run does the same.
#ifndef BENCH_GATE_COUNTED_PAIR_HPP
#define BENCH_GATE_COUNTED_PAIR_HPP

#include <array>
#include <cstddef>
#include <cstdint>

#include <rte_mbuf.h>

#include <ntbmsg.h>

namespace gate
{

inline constexpr const char *near_device = "raw_plx_ntb0";
inline constexpr const char *far_device = "raw_plx_ntb1";
inline constexpr uint16_t most = 32; ///< messages of a burst
inline constexpr unsigned turns = 8; ///< channels that are used in turn

/// Says what failed and ends the program: a count without its traffic means nothing.
[[noreturn]] void fail(const char *what, int got);

struct Pair {
    Pair(); ///< opens both and waits until they are connected
    ~Pair();
    Pair(const Pair &) = delete;
    Pair &operator=(const Pair &) = delete;

    /// A channel from near to far, the far end in a poll set, the near one with completions.
    void join();
    /// Channels that are used in turn, with credit for one burst each, their far ends in the set.
    void join_turns();
    /// Memory of the far host, as the near one sees it.
    void expose(size_t bytes);

    ntbmsg_endpoint *near = nullptr;
    ntbmsg_endpoint *far = nullptr;
    ntbmsg_queue_burst near_queue{};
    ntbmsg_queue_burst far_queue{};
    ntbmsg_worker *near_worker = nullptr;
    ntbmsg_worker *far_worker = nullptr;
    ntbmsg_channel *from = nullptr;
    ntbmsg_channel *to = nullptr;
    std::array<ntbmsg_channel *, turns> each_from{}, each_to{};
    ntbmsg_poll_set *far_set = nullptr;
    ntbmsg_cq *cq = nullptr;
    ntbmsg_region *region = nullptr;
    ntbmsg_remote *remote = nullptr;

private:
    /// A channel with so much credit for each end.
    void connect(uint32_t credit, ntbmsg_channel *&near_end, ntbmsg_channel *&far_end);
};

/// @p n messages of @p bytes each from the near endpoint's pool, in chains where they are long.
void fill(const Pair &pair, rte_mbuf **mbufs, uint16_t n, uint32_t bytes);

/// Name of the compiled variant of the hot path, e.g. "plain/avx2".
const char *variant();

} // namespace gate

#endif
