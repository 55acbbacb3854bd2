// SPDX-License-Identifier: BSD-3-Clause
#include "realtime.hpp"

#include <sched.h>

namespace app
{

void set_realtime(bool on)
{
    sched_param parameters = {};
    parameters.sched_priority = on ? 1 : 0;
    sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &parameters);
}

} // namespace app
