// SPDX-License-Identifier: BSD-3-Clause
#include "host/wakeup.hpp"

#include <ntbmsg.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <vector>

#include <rte_mbuf.h>
#include <rte_pmd_plx_ntb.h>

namespace bench
{

namespace
{

constexpr long asleep_ns = 2'000'000; // spinning, arming and a re-check are over by then

} // namespace

void wake(const Ways &ways, const Command &command, Result &result)
{
    const uint64_t give_up = monotonic_ns() + command.bound_ns;
    for (; result.count < command.rounds; result.count++) {
        const timespec pause{0, asleep_ns};
        nanosleep(&pause, nullptr);
        rte_mbuf *message = rte_pktmbuf_alloc(ways.pool);
        if (message == nullptr)
            return fail(result, ENOMEM, "no mbuf to wake the receiver with");
        auto *sent_at =
            static_cast<uint64_t *>(static_cast<void *>(rte_pktmbuf_append(message, 8)));
        *sent_at = monotonic_ns();
        while (ntbmsg_queue_send_burst(ways.endpoint, 0, &message, nullptr, 1) != 1)
            if (monotonic_ns() > give_up) {
                rte_pktmbuf_free(message);
                return fail(result, ETIMEDOUT, "the receiver could not be woken in time");
            }
    }
}

void be_woken(const Ways &ways, uint16_t device_id, const Command &command, Result &result)
{
    const uint64_t give_up = monotonic_ns() + command.bound_ns;
    std::vector<uint64_t> took;
    while (took.size() < command.rounds) {
        rte_mbuf *message = nullptr;
        if (ntbmsg_queue_recv_burst(ways.endpoint, 0, &message, nullptr, 1) == 1) {
            took.push_back(monotonic_ns() - *rte_pktmbuf_mtod(message, uint64_t *));
            rte_pktmbuf_free(message);
            continue;
        }
        if (monotonic_ns() > give_up)
            return fail(result, ETIMEDOUT, "the receiver was not woken in time");
        rte_pmd_plx_ntb_rx_wait(device_id, 0, 100'000);
    }
    const auto middle = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2);
    std::nth_element(took.begin(), middle, took.end());
    result.count = took.size();
    result.ns = *middle;
}

} // namespace bench
