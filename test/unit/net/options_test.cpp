// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <cerrno>
#include <string>

#include <gtest/gtest.h>

using namespace plx::net;

namespace
{

TEST(NetOptions, WhatIsNotThePortsOwnIsTheRawdevs)
{
    Options options;
    ASSERT_EQ(parse_options("p", "cable=/run/x,mac=02:00:00:00:00:07,ring=4096,zero_copy=1,numa=0",
                            &options),
              0);
    EXPECT_STREQ(options.rawdev_args, "cable=/run/x,ring=4096,numa=0");
    EXPECT_STREQ(options.dev, "");
    EXPECT_TRUE(options.zero_copy);
    EXPECT_EQ(options.mac.addr_bytes[5], 7);
}

TEST(NetOptions, ARawdevThatExistsTakesNoDevargs)
{
    Options options;
    ASSERT_EQ(parse_options("p", "dev=0000:05:00.0,zero_copy=0", &options), 0);
    EXPECT_STREQ(options.dev, "0000:05:00.0");
    EXPECT_FALSE(options.zero_copy);
}

TEST(NetOptions, WhatIsTooLongIsRefusedAndChangesNothing)
{
    Options options;
    ASSERT_EQ(parse_options("p", "cable=mem:x", &options), 0);
    EXPECT_EQ(parse_options("p", ("dev=" + std::string(64, 'd')).c_str(), &options), -EINVAL);
    EXPECT_EQ(parse_options("p", ("cable=" + std::string(1100, 'c')).c_str(), &options), -EINVAL);
    EXPECT_EQ(parse_options("p", nullptr, &options), -EINVAL);
    EXPECT_EQ(parse_options("p", "mac=02:00:00:00:00:07,mac=02:00:00:00:00:08,cable=x", &options),
              -EINVAL);
    EXPECT_STREQ(options.rawdev_args, "cable=mem:x");
}

} // namespace
