// SPDX-License-Identifier: BSD-3-Clause
// The endpoints that are open, for those who look at them from outside: telemetry.
#ifndef NTBMSG_ENDPOINT_REGISTRY_HPP
#define NTBMSG_ENDPOINT_REGISTRY_HPP

#include "endpoint/endpoint.hpp"

namespace ntbmsg
{

/// From now on it may be looked at.
void register_endpoint(Endpoint &e);
/// When it returns, nobody looks at it any more. Nothing happens to one that was not enrolled.
void unregister_endpoint(Endpoint &e);

/// Holds the endpoints open for its own life; any thread.
class RegistryLock
{
public:
    RegistryLock();
    ~RegistryLock();
    RegistryLock(const RegistryLock &) = delete;
    RegistryLock &operator=(const RegistryLock &) = delete;

    /// @return the endpoint of a device, or NULL
    static Endpoint *at(uint32_t dev_id);
};

} // namespace ntbmsg

#endif
