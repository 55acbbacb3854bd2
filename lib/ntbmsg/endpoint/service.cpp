// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/service.hpp"

#include <cerrno>
#include <cstdio>

#include <rte_errno.h>
#include <rte_pause.h>
#include <rte_rawdev.h>
#include <rte_service.h>
#include <rte_service_component.h>

#include "base/log.hpp"
#include "dispatch/dispatcher.hpp"
#include "endpoint/endpoint.hpp"

namespace ntbmsg
{

namespace
{
int32_t poll_worker(void *worker)
{
    poll(*static_cast<Worker *>(worker));
    return 0;
}
} // namespace

int start_service(Worker &w)
{
    rte_service_spec spec{};
    const int length = std::snprintf(spec.name, sizeof(spec.name), "ntbmsg_%s_%u",
                                     device_name(*w.endpoint), w.index);
    int rc = -ENAMETOOLONG;
    if (length > 0 && static_cast<size_t>(length) < sizeof(spec.name)) {
        spec.callback = poll_worker;
        spec.callback_userdata = &w;
        spec.socket_id = rte_rawdev_socket_id(w.dev_id);
        rc = rte_service_component_register(&spec, &w.service);
    }
    if (rc != 0) {
        NTBMSG_LOG(ERR, "device %u: no service for worker %u: %s", w.dev_id, w.index,
                   rte_strerror(-rc));
        return rc;
    }
    w.has_service = true;
    return rte_service_component_runstate_set(w.service, 1);
}

void stop_service(Worker &w)
{
    if (!w.has_service)
        return;
    rte_service_component_runstate_set(w.service, 0);
    while (rte_service_may_be_active(w.service) == 1)
        rte_pause();
    rte_service_component_unregister(w.service);
    w.has_service = false;
}

} // namespace ntbmsg
