// SPDX-License-Identifier: BSD-3-Clause
// What a person reads of an endpoint.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "channels.hpp"

namespace
{

std::string dump(const ntbmsg_endpoint *endpoint)
{
    char *text = nullptr;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    EXPECT_EQ(ntbmsg_endpoint_dump(endpoint, file), 0);
    std::fclose(file);
    const std::string result(text, bytes);
    std::free(text);
    return result;
}

using Dump = Channels;

TEST_F(Dump, NamesTheDeviceAndItsLink)
{
    ASSERT_NO_FATAL_FAILURE(open(near_device, near_));
    const std::string text = dump(near_);
    EXPECT_NE(text.find("endpoint raw_plx_ntb0: waiting: "), text.npos) << text;
    EXPECT_NE(text.find("queue 0 (bare): sent 0 messages"), text.npos) << text;
    EXPECT_EQ(text.find("worker 0"), text.npos) << text;
}

TEST_F(Dump, ShowsChannelsWhileTheyAreThere)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    EXPECT_NE(dump(near_).find("worker 0: 0 of 64 channels"), std::string::npos) << dump(near_);
    ntbmsg_channel *from = nullptr, *to = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(from, to));
    ASSERT_EQ(send_one(near_, from, 100, 1), 1);

    const std::string text = dump(near_);
    EXPECT_NE(text.find("endpoint raw_plx_ntb0: connected, longest"), text.npos) << text;
    EXPECT_NE(text.find("queue 0 (worker): sent "), text.npos) << text;
    EXPECT_NE(text.find("worker 0: 1 of 64 channels"), text.npos) << text;
    EXPECT_NE(text.find("port 7, open, reason 0; sent 1 messages, 100 bytes"), text.npos) << text;
    EXPECT_NE(text.find("credit 63 of 64 messages"), text.npos) << text;

    give_back({from, to});
    EXPECT_TRUE(await([&] {
        return dump(near_).find("worker 0: 0 of 64 channels") != std::string::npos;
    })) << dump(near_);
}

TEST_F(Dump, ShowsRegions)
{
    ASSERT_NO_FATAL_FAILURE(open(near_device, near_));
    char memory[300];
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_register(near_, memory, sizeof(memory),
                                     NTBMSG_RIGHT_READ | NTBMSG_RIGHT_WRITE, &region),
              0);
    const std::string text = dump(near_);
    EXPECT_NE(text.find("region of 300 bytes (wr, served): 0 writes"), text.npos) << text;
    EXPECT_EQ(ntbmsg_region_release(region), 0);
    EXPECT_EQ(dump(near_).find("region of"), std::string::npos);
}

TEST_F(Dump, RefusesWhatIsNotThere)
{
    ASSERT_NO_FATAL_FAILURE(open(near_device, near_));
    EXPECT_EQ(ntbmsg_endpoint_dump(nullptr, stdout), -EINVAL);
    EXPECT_EQ(ntbmsg_endpoint_dump(near_, nullptr), -EINVAL);
}

} // namespace
