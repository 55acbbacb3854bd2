// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_READINESS_HANDLERS_HPP
#define NTB_SOCKET_READINESS_HANDLERS_HPP

#include <cstdint>

namespace ntb::socket
{

/// To be called in front of each signal handler of the program, in the thread it runs in: a call
/// that waits ends with EINTR though it was not in the kernel (rule W9).
/// @param restarts  installed with SA_RESTART: it ends no blocking read and write, but any other
///                  wait
void handler_runs(bool restarts);

/// Handlers that have run in this thread.
struct Handled {
    std::uint32_t all;
    std::uint32_t not_restarting;
};
Handled handled();

} // namespace ntb::socket

#endif
