// SPDX-License-Identifier: BSD-3-Clause
// The open endpoints, for telemetry.
#ifndef NTBMSG_ENDPOINT_REGISTRY_HPP
#define NTBMSG_ENDPOINT_REGISTRY_HPP

#include "endpoint/endpoint.hpp"

namespace ntbmsg
{

/// Makes an endpoint visible to RegistryLock::at().
void register_endpoint(Endpoint &e);
/// Removes it; when this returns, no other thread uses it through the registry. No effect if it is
/// not registered.
void unregister_endpoint(Endpoint &e);

/// Keeps registered endpoints from being closed for its own life; any thread.
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
