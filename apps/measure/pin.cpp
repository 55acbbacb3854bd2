// SPDX-License-Identifier: BSD-3-Clause
#include "pin.hpp"

#include <sched.h>

namespace app
{

bool pin(unsigned cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof(set), &set) == 0;
}

} // namespace app
