// SPDX-License-Identifier: BSD-3-Clause
#ifndef TEST_QUEUE_TRAFFIC_HPP
#define TEST_QUEUE_TRAFFIC_HPP

#include "pair.hpp"

namespace test_queue
{

/// Random bursts of random sizes, sender ahead of receiver, compared message by message.
void random_traffic(Pair &pair, unsigned rounds, uint32_t longest, uint32_t seed);

} // namespace test_queue

#endif
