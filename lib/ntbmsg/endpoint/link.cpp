// SPDX-License-Identifier: BSD-3-Clause
// The state of the connection, and its events.
#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/clock.hpp"
#include "endpoint/endpoint.hpp"

namespace
{

// An event wakes a waiter at once; this bounds the delay if one was dropped.
constexpr uint32_t recheck_ms = 50;

rte_pmd_plx_ntb_link link_of(const ntbmsg_endpoint &e)
{
    rte_pmd_plx_ntb_link link{};
    rte_pmd_plx_ntb_link_get(e.dev_id, &link);
    return link;
}

enum ntbmsg_link_state translate(rte_pmd_plx_ntb_state state)
{
    switch (state) {
    case RTE_PMD_PLX_NTB_CONNECTED:
        return NTBMSG_LINK_CONNECTED;
    case RTE_PMD_PLX_NTB_CLOSING:
        return NTBMSG_LINK_CLOSING;
    case RTE_PMD_PLX_NTB_SILENT:
        return NTBMSG_LINK_SILENT;
    case RTE_PMD_PLX_NTB_REFUSED:
        return NTBMSG_LINK_REFUSED;
    case RTE_PMD_PLX_NTB_STOPPED:
    case RTE_PMD_PLX_NTB_WAITING:
    case RTE_PMD_PLX_NTB_FENCING:
        break;
    }
    return NTBMSG_LINK_WAITING;
}

uint64_t now_ms()
{
    return ntbmsg::real_us() / 1000;
}

} // namespace

enum ntbmsg_link_state ntbmsg_endpoint_link_state_get(const ntbmsg_endpoint *endpoint)
{
    return ntbmsg::is_live(endpoint, __func__) ? translate(link_of(*endpoint).state)
                                               : NTBMSG_LINK_WAITING;
}

int ntbmsg_endpoint_wait_connected(ntbmsg_endpoint *endpoint, uint32_t timeout_ms)
{
    if (!ntbmsg::is_live(endpoint, __func__))
        return -EINVAL;
    const uint64_t start = now_ms();
    for (;;) {
        // Counted before the state is read: an event in between ends the wait at once.
        const uint64_t seen = endpoint->events.pushed();
        switch (ntbmsg_endpoint_link_state_get(endpoint)) {
        case NTBMSG_LINK_CONNECTED:
        case NTBMSG_LINK_SILENT:
            return 0;
        case NTBMSG_LINK_REFUSED:
            return -EPROTO;
        case NTBMSG_LINK_WAITING:
        case NTBMSG_LINK_CLOSING:
            break;
        }
        const uint64_t passed = now_ms() - start;
        if (passed >= timeout_ms)
            return -ETIMEDOUT;
        const uint64_t left = timeout_ms - passed;
        endpoint->events.await(seen, static_cast<uint32_t>(std::min<uint64_t>(left, recheck_ms)));
    }
}

int ntbmsg_endpoint_link_reason_get(const ntbmsg_endpoint *endpoint, char *text, size_t bytes)
{
    if (!ntbmsg::is_live(endpoint, __func__) || text == nullptr || bytes == 0)
        return -EINVAL;
    const rte_pmd_plx_ntb_link link = link_of(*endpoint);
    const char *why = link.why;
    for (uint32_t i = 0; *why == 0 && i < endpoint->workers_made; ++i) {
        if (const char *refused = endpoint->workers[i].refused.load(std::memory_order_relaxed))
            why = refused;
    }
    std::snprintf(text, bytes, "%s", why);
    return 0;
}

uint32_t ntbmsg_endpoint_max_message(const ntbmsg_endpoint *endpoint)
{
    return ntbmsg::is_live(endpoint, __func__) ? link_of(*endpoint).peer_max_message : 0;
}

int ntbmsg_endpoint_event_poll(ntbmsg_endpoint *endpoint, ntbmsg_event *event)
{
    if (!ntbmsg::is_live(endpoint, __func__) || event == nullptr)
        return -EINVAL;
    return endpoint->events.pop(*event) ? 1 : 0;
}
