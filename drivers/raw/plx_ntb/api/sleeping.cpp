// SPDX-License-Identifier: BSD-3-Clause
// Public calls: sleeping until a message arrives.
#include <cerrno>

#include "api/devices.hpp"
#include "rte_pmd_plx_ntb_driver.h"

using plx::pmd::Device;

namespace
{
/// The device, when its receiving queue can be slept on.
Device *sleeps_on(uint16_t dev_id, uint16_t queue)
{
    Device *device = plx::pmd::device_of(dev_id);
    if (device == nullptr)
        return nullptr;
    const plx::pmd::QueuePair *qp = device->queue(queue);
    return qp != nullptr && qp->set_up ? device : nullptr;
}

/// Of rte_power_monitor(): -1 if it shall not sleep.
int message_is_there(uint64_t word, const uint64_t opaque[RTE_POWER_MONITOR_OPAQUE_SZ])
{
    return word == opaque[0] ? -1 : 0;
}
int gate_is_open(uint64_t word, const uint64_t *)
{
    return word != 0 ? -1 : 0;
}
} // namespace

int rte_pmd_plx_ntb_rx_event_fd(uint16_t dev_id, uint16_t queue)
{
    Device *device = sleeps_on(dev_id, queue);
    return device == nullptr ? -ENODEV : device->sleepers().event_fd(queue);
}

int rte_pmd_plx_ntb_rx_arm(uint16_t dev_id, uint16_t queue)
{
    Device *device = sleeps_on(dev_id, queue);
    if (device == nullptr)
        return -ENODEV;
    if (device->sleepers().arm(queue))
        return 0;
    device->sleepers().signal(queue);
    return 1;
}

int rte_pmd_plx_ntb_rx_disarm(uint16_t dev_id, uint16_t queue)
{
    Device *device = sleeps_on(dev_id, queue);
    if (device == nullptr)
        return -ENODEV;
    device->sleepers().disarm(queue);
    return 0;
}

int rte_pmd_plx_ntb_rx_wake(uint16_t dev_id, uint16_t queue)
{
    Device *device = sleeps_on(dev_id, queue);
    if (device == nullptr)
        return -ENODEV;
    device->sleepers().wake(queue);
    return 0;
}

int rte_pmd_plx_ntb_rx_wait(uint16_t dev_id, uint16_t queue, uint32_t timeout_us)
{
    Device *device = sleeps_on(dev_id, queue);
    return device == nullptr ? -ENODEV : device->sleepers().wait(queue, timeout_us);
}

void rte_pmd_plx_ntb_rx_monitor_get(const void *rx_queue, struct rte_power_monitor_cond *out)
{
    auto *half = static_cast<plx::pmd::RxHalf *>(const_cast<void *>(rx_queue));
    const auto watch = [out](const void *address, rte_power_monitor_clb_t fn, uint64_t opaque) {
        *out = {.addr = const_cast<void *>(address),
                .size = sizeof(uint32_t),
                .fn = fn,
                .opaque = {opaque}};
    };
    // Behind the gate, as a burst: the watch belongs to a connection.
    if (half->gate.enter() == half->seen)
        watch(half->watch->line, message_is_there, half->watch->tag);
    else // closed, or opened since the last burst, which finds out
        watch(half->gate.word(), gate_is_open, 0);
    half->gate.leave();
}
