// SPDX-License-Identifier: BSD-3-Clause
#include "device/sleep_service.hpp"

#include <cerrno>
#include <cstdio>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_service.h>
#include <rte_service_component.h>

#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

constexpr unsigned quiet_wait_us = 200;
constexpr unsigned quiet_checks = 5000; ///< bounded, and longer than any call of it

int32_t serve(void *arg)
{
    static_cast<Sleepers *>(arg)->check_all();
    return 0;
}

} // namespace

int sleep_service_register(const char *name, int node, Sleepers &sleepers, uint32_t *id)
{
    rte_service_spec spec{};
    static_assert(sizeof(spec.name) == 32);
    std::snprintf(spec.name, sizeof(spec.name), "%.31s", name);
    spec.callback = serve;
    spec.callback_userdata = &sleepers;
    spec.capabilities = RTE_SERVICE_CAP_MT_SAFE;
    spec.socket_id = node;
    const int rc = rte_service_component_register(&spec, id);
    if (rc != 0) {
        PLX_INIT_LOG(ERR, "%s: EAL registers no service of that name: %s\n", name,
                     rte_strerror(-rc));
        return rc;
    }
    rte_service_component_runstate_set(*id, 1);
    return 0;
}

void sleep_service_unregister(uint32_t id)
{
    rte_service_component_runstate_set(id, 0);
    for (unsigned i = 0; i < quiet_checks && rte_service_may_be_active(id) == 1; ++i)
        rte_delay_us_sleep(quiet_wait_us);
    rte_service_component_unregister(id);
}

} // namespace plx::pmd
