// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/endpoint.hpp"

#include <cstdio>

#include <rte_rawdev.h>

namespace ntbmsg
{

void name_of_device(const Endpoint &e, char (&name)[64])
{
    std::snprintf(name, sizeof(name), "%s", rte_rawdevs[e.dev_id].name);
}

} // namespace ntbmsg
