// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_COMMON_LOCKED_HPP
#define NTB_COMMON_LOCKED_HPP

#include <pthread.h>

namespace ntb
{

/// Holds a mutex for its own life.
class Locked
{
public:
    explicit Locked(pthread_mutex_t &mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
    ~Locked() { pthread_mutex_unlock(&mutex_); }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;

private:
    pthread_mutex_t &mutex_;
};

} // namespace ntb

#endif
