// SPDX-License-Identifier: BSD-3-Clause
#include "api/holding.hpp"

#include <cerrno>
#include <new>
#include <utility>

#include <rte_malloc.h>

#include <locked.hpp>

#include "api/devices.hpp"
#include "rte_pmd_plx_ntb_driver.h"

struct rte_pmd_plx_ntb_holder {
    uint16_t id;
    void (*gone)(void *arg); ///< NULL: it was called
    void *arg;
    plx::pmd::Device *orphan; ///< of a rawdev that is gone: freed with the hold
};

namespace plx::pmd
{

namespace
{

/// Also held while a holder is informed, who may let go meanwhile.
pthread_mutex_t holds_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
rte_pmd_plx_ntb_holder *holds[RTE_RAWDEV_MAX_DEVS];

void destroy(Device *device)
{
    device->~Device();
    rte_free(device);
}

} // namespace

void tell_gone(uint16_t dev_id)
{
    const ntb::Locked locked(holds_mutex);
    rte_pmd_plx_ntb_holder *hold = holds[dev_id];
    if (hold == nullptr)
        return;
    if (const auto gone = std::exchange(hold->gone, nullptr); gone != nullptr)
        gone(hold->arg);
}

void free_device(uint16_t dev_id, Device *device)
{
    const ntb::Locked locked(holds_mutex);
    rte_pmd_plx_ntb_holder *hold = std::exchange(holds[dev_id], nullptr);
    if (hold == nullptr)
        destroy(device);
    else
        hold->orphan = device; // its gates stay, closed, for bursts of the holder
}

} // namespace plx::pmd

int rte_pmd_plx_ntb_hold(uint16_t dev_id, void (*gone)(void *arg), void *arg,
                         rte_pmd_plx_ntb_holder **out)
{
    using namespace plx::pmd;
    const ntb::Locked locked(holds_mutex);
    const Device *device = device_of(dev_id);
    if (device == nullptr || device->closed())
        return -ENODEV;
    if (holds[dev_id] != nullptr)
        return -EBUSY;
    void *memory = rte_zmalloc("plx_hold", sizeof(rte_pmd_plx_ntb_holder), 0);
    if (memory == nullptr)
        return -ENOMEM;
    *out = holds[dev_id] = new (memory) rte_pmd_plx_ntb_holder{dev_id, gone, arg, nullptr};
    return 0;
}

void rte_pmd_plx_ntb_unhold(struct rte_pmd_plx_ntb_holder *hold)
{
    using namespace plx::pmd;
    if (hold == nullptr)
        return;
    const ntb::Locked locked(holds_mutex);
    if (hold->orphan != nullptr)
        destroy(hold->orphan);
    else if (holds[hold->id] == hold)
        holds[hold->id] = nullptr;
    rte_free(hold);
}
