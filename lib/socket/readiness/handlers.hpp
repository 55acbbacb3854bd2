// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_READINESS_HANDLERS_HPP
#define NTB_SOCKET_READINESS_HANDLERS_HPP

#include <cstdint>
#include <ctime>

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
    std::uint32_t ending; ///< those that have closed what the call waits for
};
Handled handled();
/// To be called in a handler that closes what its thread's call waits for: started again, that call
/// would find no such descriptor.
void end_restarts();

/// The time-out that this thread gives to a kernel's wait. handler_runs() makes it 0: so one that
/// runs between a look at handled() and that wait is not slept over (rule W9), without a system
/// call. To be set before that look, and 0 again afterwards.
timespec &sleep_time();

} // namespace ntb::socket

#endif
