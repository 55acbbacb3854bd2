// SPDX-License-Identifier: BSD-3-Clause
#include "measure/realtime.hpp"

#include <sched.h>

namespace pktgen
{

namespace
{

void set(int policy, int priority)
{
    sched_param parameters = {};
    parameters.sched_priority = priority;
    sched_setscheduler(0, policy, &parameters); // this thread alone
}

} // namespace

Realtime::Realtime(bool on) : on_(on)
{
    if (on_)
        set(SCHED_FIFO, 1);
}

Realtime::~Realtime()
{
    if (on_)
        set(SCHED_OTHER, 0);
}

} // namespace pktgen
