// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/handlers.hpp"

#include <gtest/gtest.h>
#include <thread>

using namespace ntb::socket;

namespace
{

TEST(Handlers, AreCountedWhereTheyRun)
{
    const Handled before = handled();
    handler_runs(true);
    EXPECT_EQ(handled().all, before.all + 1);
    EXPECT_EQ(handled().not_restarting, before.not_restarting);
    handler_runs(false);
    EXPECT_EQ(handled().all, before.all + 2);
    EXPECT_EQ(handled().not_restarting, before.not_restarting + 1);
    std::thread([] { EXPECT_EQ(handled().all, 0u); }).join();
}

} // namespace
