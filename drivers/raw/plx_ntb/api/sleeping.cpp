// SPDX-License-Identifier: BSD-3-Clause
// The public border of sleeping, and the service that watches for those who sleep.
#include <cerrno>
#include <cstdio>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_service.h>
#include <rte_service_component.h>

#include "device/device.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

constexpr unsigned quiet_looks = 5000; ///< bounded, and long past any call of it

int32_t serve(void *arg)
{
    static_cast<Device *>(arg)->sleepers().look();
    return 0;
}

} // namespace

int sleep_service_register(Device &device, uint32_t *id)
{
    rte_service_spec spec{};
    static_assert(sizeof(spec.name) == 32);
    std::snprintf(spec.name, sizeof(spec.name), "%.31s", device.name());
    spec.callback = serve;
    spec.callback_userdata = &device;
    spec.capabilities = RTE_SERVICE_CAP_MT_SAFE;
    spec.socket_id = device.node();
    const int rc = rte_service_component_register(&spec, id);
    if (rc != 0) {
        PLX_INIT_LOG(ERR, "%s: EAL registers no service of that name: %s\n", device.name(),
                     rte_strerror(-rc));
        return rc;
    }
    rte_service_component_runstate_set(*id, 1);
    return 0;
}

void sleep_service_unregister(uint32_t id)
{
    rte_service_component_runstate_set(id, 0);
    for (unsigned i = 0; i < quiet_looks && rte_service_may_be_active(id) == 1; ++i)
        rte_delay_us_sleep(retry_us);
    rte_service_component_unregister(id);
}

} // namespace plx::pmd

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
    return device->sleepers().arm(queue) ? 0 : 1;
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
