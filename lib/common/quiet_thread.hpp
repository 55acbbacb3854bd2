// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_COMMON_QUIET_THREAD_HPP
#define NTB_COMMON_QUIET_THREAD_HPP

#include <csignal>

#include <pthread.h>

namespace ntb
{

/// Starts a thread of that name in a program of others, whose signal handlers are not to run in it.
/// @tparam run  a member function of the owner: what the thread does
/// @return 0 or a negative errno
template <auto run, typename Owner>
int start_quiet_thread(pthread_t &thread, const char *name, Owner &owner)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(
        &thread, nullptr,
        [](void *object) -> void * {
            (static_cast<Owner *>(object)->*run)();
            return nullptr;
        },
        &owner);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error == 0)
        pthread_setname_np(thread, name);
    return -error;
}

} // namespace ntb

#endif
