// SPDX-License-Identifier: BSD-3-Clause
#include "peers/pair/priority.hpp"

#include <sched.h>

namespace peers
{

void Priority::change(bool realtime)
{
    if (!wanted)
        return;
    sched_param parameters = {};
    parameters.sched_priority = realtime ? 1 : 0;
    sched_setscheduler(0, realtime ? SCHED_FIFO : SCHED_OTHER, &parameters);
}

} // namespace peers
