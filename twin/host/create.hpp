// SPDX-License-Identifier: BSD-3-Clause
// A host and what it owns, and which chip it is on.
#ifndef PLX_TWIN_HOST_CREATE_HPP
#define PLX_TWIN_HOST_CREATE_HPP

namespace plx::twin
{

class Host;
struct CableOps;
struct Config;
struct Error;

/// @param config checked. @return 0; a negative errno and why in @p error
int host_create(const Config &config, const CableOps &cable, Host **out, Error *error);
void host_destroy(Host *host);
/// Takes over the former chip that the other end offers, or powers a new one. Under the host's
/// lock. @return 0 or -ENOMEM
int choose_chip(Host &host);

} // namespace plx::twin

#endif
