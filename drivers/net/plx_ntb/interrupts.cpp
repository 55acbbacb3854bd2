// SPDX-License-Identifier: BSD-3-Clause
#include "interrupts.hpp"

#include <cerrno>

#include <rte_interrupts.h>

namespace plx::net
{

int make_interrupts(rte_eth_dev *dev)
{
    Port &port = port_of(dev);
    const int queues = dev->data->nb_rx_queues;
    rte_intr_handle *handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
    if (handle == nullptr)
        return -ENOMEM;
    port.interrupts = dev->intr_handle = handle;
    int rc = rte_intr_vec_list_alloc(handle, "plx_ntb", queues);
    if (rc == 0)
        rc = rte_intr_type_set(handle, RTE_INTR_HANDLE_VDEV);
    // The descriptors belong to the rawdev, which reads them itself.
    if (rc == 0)
        rc = rte_intr_efd_counter_size_set(handle, 0);
    if (rc == 0)
        rc = rte_intr_nb_efd_set(handle, queues);
    for (int q = 0; rc == 0 && q < queues; ++q) {
        const int fd = rte_pmd_plx_ntb_rx_event_fd(port.raw_id, static_cast<uint16_t>(q));
        rc = fd < 0 ? fd : rte_intr_efds_index_set(handle, q, fd);
        if (rc == 0)
            rc = rte_intr_vec_list_index_set(handle, q, RTE_INTR_VEC_RXTX_OFFSET + q);
    }
    if (rc != 0)
        drop_interrupts(dev);
    return rc;
}

void drop_interrupts(rte_eth_dev *dev)
{
    Port &port = port_of(dev);
    if (port.interrupts == nullptr)
        return;
    rte_intr_free_epoll_fd(port.interrupts);
    rte_intr_vec_list_free(port.interrupts);
    rte_intr_instance_free(port.interrupts);
    port.interrupts = dev->intr_handle = nullptr;
}

int rx_interrupt_enable(rte_eth_dev *dev, uint16_t queue)
{
    const int rc = rte_pmd_plx_ntb_rx_arm(port_of(dev).raw_id, queue);
    return rc < 0 ? rc : 0; // 1: there are frames, and the descriptor is readable
}

int rx_interrupt_disable(rte_eth_dev *dev, uint16_t queue)
{
    return rte_pmd_plx_ntb_rx_disarm(port_of(dev).raw_id, queue);
}

} // namespace plx::net
