// SPDX-License-Identifier: BSD-3-Clause
// A receiver that sleeps, and what wakes it.
#ifndef BENCH_HOST_WAKEUP_HPP
#define BENCH_HOST_WAKEUP_HPP

#include "host/traffic.hpp"

namespace bench
{

/// command.rounds messages, each long after the receiver has fallen asleep, with the time of its
/// sending in it.
void wake(const Ways &, const Command &, Result &);
/// Takes them, asleep in between. result.ns: the median from sending to receiving; one clock.
void be_woken(const Ways &, uint16_t device_id, const Command &, Result &);

} // namespace bench

#endif
