// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_COMMON_QUIET_THREAD_HPP
#define NTB_COMMON_QUIET_THREAD_HPP

#include <csignal>

#include <pthread.h>

namespace ntb
{

/// Starts a thread in a program of others, whose signal handlers are not to run in it.
/// @return 0 or a negative errno
inline int start_quiet_thread(pthread_t &thread, void *(*run)(void *), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&thread, nullptr, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return -error;
}

} // namespace ntb

#endif
