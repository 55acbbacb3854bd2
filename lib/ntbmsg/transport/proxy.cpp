// SPDX-License-Identifier: BSD-3-Clause
#include "transport/proxy.hpp"

#include <cstdlib>
#include <new>

#include <rte_common.h>

namespace ntbmsg
{

Proxy *make_proxy(const ntbmsg_channel_options &options)
{
    constexpr uint32_t default_depth = 64;
    // From malloc: pages then come from the NUMA node of the thread that touches them first.
    void *memory = std::aligned_alloc(alignof(Proxy), sizeof(Proxy));
    if (memory == nullptr)
        return nullptr;
    auto *p = new (memory) Proxy{};
    p->depth = rte_align32pow2(options.send_depth != 0 ? options.send_depth : default_depth);
    return p;
}

void call(Channel &c, uint32_t bits)
{
    Worker &w = *c.worker;
    if (c.calls.fetch_or(bits, std::memory_order_acq_rel) != 0)
        return; // it is in the stack already, or the first caller is about to push it
    Channel *top = w.calls.load(std::memory_order_relaxed);
    do
        c.next_call = top;
    while (!w.calls.compare_exchange_weak(top, &c, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
    if (unlikely(w.armed.load(std::memory_order_seq_cst))) // pairs with arm_for_calls()
        wake_thread(w);
}

void wake_thread(Worker &w)
{
    if (w.armed.exchange(false, std::memory_order_relaxed))
        rte_pmd_plx_ntb_rx_wake(w.dev_id, w.queue);
}

} // namespace ntbmsg
