// SPDX-License-Identifier: BSD-3-Clause
// Plugging a host into a cable, and pulling it out.
#include "cable/ops.hpp"
#include "host/config.hpp"
#include "host/create.hpp"
#include "host/error.hpp"
#include "host/host.hpp"
#include "twin.hpp"

#include <cerrno>
#include <cstring>

namespace plx::twin
{

namespace
{
const CableOps &ops_of(const char *cable)
{
    constexpr char mem_prefix[] = "mem:";
    const bool mem = strncmp(cable, mem_prefix, sizeof(mem_prefix) - 1) == 0;
    return mem ? mem_cable : socket_cable;
}

int start_thread(Host &host, Error *error)
{
    const int code =
        host.config.thread_start(&host.thread, "plx-twin-cable", host.ops->thread, &host);
    return code == 0 ? 0
                     : fail(error, code, "cannot start the cable's thread: %s", strerror(-code));
}

int plug_in(Host &host, Error *error)
{
    int code = host.ops->join(host, error);
    if (code != 0)
        return code;
    {
        Locked locked(host);
        code = choose_chip(host);
        if (code == 0)
            host.ops->present(host);
    }
    if (code == 0)
        code = start_thread(host, error);
    else
        fail(error, code, "no memory for the chip's registers");
    if (code != 0)
        host.ops->leave(host);
    return code;
}
} // namespace

int attach(const Config &config, Host **out, Error *error)
{
    int code = config_check(config, error);
    Host *host = nullptr;
    if (code == 0)
        code = host_create(config, ops_of(config.cable), &host, error);
    if (code != 0)
        return code;
    code = plug_in(*host, error);
    if (code != 0) {
        host_destroy(host);
        return code;
    }
    *out = host;
    return 0;
}

void detach(Host *host)
{
    if (host == nullptr)
        return;
    {
        Locked locked(*host);
        host->stop = true;
        wake(*host);
    }
    host->config.thread_join(host->thread);
    host->ops->leave(*host);
    host_destroy(host);
}

} // namespace plx::twin
