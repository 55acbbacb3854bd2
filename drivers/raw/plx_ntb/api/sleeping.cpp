// SPDX-License-Identifier: BSD-3-Clause
// Public calls: sleeping until a message arrives.
#include <cerrno>

#include "api/devices.hpp"

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
