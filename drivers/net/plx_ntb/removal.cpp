// SPDX-License-Identifier: BSD-3-Clause
#include "removal.hpp"

#include <cstring>

#include <pthread.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_rawdev.h>

#include "link.hpp"
#include "log.hpp"

namespace plx::net
{

namespace
{

/// An application may close the port while the removal is reported to it.
pthread_mutex_t ports_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
rte_eth_dev *ports[RTE_MAX_ETHPORTS];
bool registered;

rte_eth_dev *port_on(const char *rawdev)
{
    for (rte_eth_dev *dev : ports)
        if (dev != nullptr && std::strcmp(port_of(dev).rawdev, rawdev) == 0)
            return dev;
    return nullptr;
}

/// On EAL's thread of interrupts. It knows the names of buses: that of a rawdev is its device's.
void on_device_event(const char *device, rte_dev_event_type event, void *)
{
    if (event != RTE_DEV_EVENT_REMOVE || device == nullptr)
        return;
    pthread_mutex_lock(&ports_mutex);
    if (rte_eth_dev *dev = port_on(device); dev != nullptr && !is_gone(port_of(dev))) {
        // No burst touches the card any more, and mbufs of the application's pools are returned.
        rte_pmd_plx_ntb_stop(port_of(dev).raw_id, 0, nullptr);
        rte_rawdev_close(port_of(dev).raw_id);
        on_gone(dev); // the close has, unless it was refused
    }
    pthread_mutex_unlock(&ports_mutex);
}

} // namespace

void on_gone(void *arg)
{
    auto *dev = static_cast<rte_eth_dev *>(arg);
    Port &port = port_of(dev);
    if (is_gone(port))
        return;
    PLX_NET_LOG(NOTICE, "%s: %s was removed: close the port\n", dev->data->name, port.rawdev);
    port.running.store(false, std::memory_order_relaxed);
    unwatch_link(port);
    port.raw_id = no_rawdev;
    link_is_down(dev);
    if (dev->data->dev_conf.intr_conf.rmv != 0)
        rte_eth_dev_callback_process(dev, RTE_ETH_EVENT_INTR_RMV, nullptr);
}

void watch_removal(rte_eth_dev *dev)
{
    pthread_mutex_lock(&ports_mutex);
    ports[dev->data->port_id] = dev;
    // Once for all ports.
    const int rc =
        registered ? 0 : rte_dev_event_callback_register(nullptr, on_device_event, nullptr);
    registered = rc == 0;
    pthread_mutex_unlock(&ports_mutex);
    if (rc != 0)
        PLX_NET_LOG(WARNING, "%s: removal of its card will not be noticed: %s\n", dev->data->name,
                    rte_strerror(-rc));
}

void unwatch_removal(const rte_eth_dev *dev)
{
    pthread_mutex_lock(&ports_mutex);
    ports[dev->data->port_id] = nullptr;
    pthread_mutex_unlock(&ports_mutex);
}

} // namespace plx::net
