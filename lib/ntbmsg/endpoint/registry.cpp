// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/registry.hpp"

#include <pthread.h>

#include <rte_rawdev.h>

#include <locked.hpp>

namespace ntbmsg
{

namespace
{

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
Endpoint *endpoints[RTE_RAWDEV_MAX_DEVS];

} // namespace

void register_endpoint(Endpoint &e)
{
    const ntb::Locked locked(lock);
    endpoints[e.dev_id] = &e;
}

void unregister_endpoint(Endpoint &e)
{
    const ntb::Locked locked(lock);
    if (endpoints[e.dev_id] == &e)
        endpoints[e.dev_id] = nullptr;
}

RegistryLock::RegistryLock()
{
    pthread_mutex_lock(&lock);
}

RegistryLock::~RegistryLock()
{
    pthread_mutex_unlock(&lock);
}

Endpoint *RegistryLock::at(uint32_t dev_id)
{
    return dev_id < RTE_RAWDEV_MAX_DEVS ? endpoints[dev_id] : nullptr;
}

} // namespace ntbmsg
