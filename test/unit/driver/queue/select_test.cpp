// SPDX-License-Identifier: BSD-3-Clause
#include "queue/queue.hpp"

#include <string>

#include <gtest/gtest.h>

#include "every_ops.hpp"

namespace test_queue
{

using namespace plx::queue;

TEST(SelectOps, ChoosesARunnableVariant)
{
    for (Policy policy : {Policy::plain, Policy::write_combining})
        EXPECT_TRUE(runs_here(select_ops(policy)->name)) << select_ops(policy)->name;
    EXPECT_EQ(std::string(select_ops(Policy::plain)->name).substr(0, 6), "plain/");
}

} // namespace test_queue
