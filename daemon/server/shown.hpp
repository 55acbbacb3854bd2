// SPDX-License-Identifier: BSD-3-Clause
// A socket that a client shows as its own.
#ifndef NTBD_SERVER_SHOWN_HPP
#define NTBD_SERVER_SHOWN_HPP

#include "broker/claims.hpp"

namespace ntbd
{

/// Of this process's network namespace, 0: this kernel does not say.
uint64_t own_namespace();

/// Asks the kernel what it is. Status -ENOTSOCK or -EPROTONOSUPPORT: no TCP socket, -ENOTCONN: not
/// established, -EXDEV: of another network namespace than @p own, -EMFILE: it did not get here
Shown inspect(int fd, uint64_t own);

} // namespace ntbd

#endif
