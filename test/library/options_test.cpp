// SPDX-License-Identifier: BSD-3-Clause
// Defaults and ranges, as ntbmsg.h states them. No device is needed: options are checked first.
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include <ntbmsg.h>

namespace
{

struct Case {
    const char *name;
    uint32_t ntbmsg_endpoint_options::*field;
    uint32_t value;
};

class WrongOption : public testing::TestWithParam<Case>
{
};

TEST_P(WrongOption, IsRefused)
{
    ntbmsg_endpoint_options options;
    ntbmsg_endpoint_options_init(&options);
    options.*GetParam().field = GetParam().value;
    ntbmsg_endpoint *endpoint = nullptr;
    EXPECT_EQ(ntbmsg_endpoint_open("no_such_device", &options, &endpoint), -EINVAL);
    EXPECT_EQ(endpoint, nullptr);
}

using O = ntbmsg_endpoint_options;
constexpr Case wrong[] = {
    {"no_queue", &O::queues, 0},
    {"queues", &O::queues, 65},
    {"ring_short", &O::ring_lines, 32},
    {"ring_long", &O::ring_lines, 131072},
    {"ring_odd", &O::ring_lines, 1000},
    {"buf_odd", &O::buf_bytes, 100},
    {"buf_short", &O::buf_bytes, 32},
    {"buf_long", &O::buf_bytes, 65344},
    {"inline_short", &O::inline_max, 47},
    {"inline_long", &O::inline_max, 1025},
    {"message_long", &O::max_message, 1U << 24},
    {"buffers", &O::buffers, (1U << 20) + 1},
    {"queue_buffers", &O::queue_buffers, UINT32_MAX},
    {"tx_mbufs", &O::tx_mbufs, UINT32_MAX},
    {"tx_room_odd", &O::tx_room, 100},
    {"tx_room_long", &O::tx_room, 65344},
};

INSTANTIATE_TEST_SUITE_P(Ranges, WrongOption, testing::ValuesIn(wrong),
                         [](const auto &row) { return std::string(row.param.name); });

TEST(Options, InitSetsTheDefaults)
{
    ntbmsg_endpoint_options options;
    std::memset(&options, 0xff, sizeof(options));
    ntbmsg_endpoint_options_init(&options);
    EXPECT_EQ(options.size, sizeof(options));
    EXPECT_EQ(options.queues, 1U);
    EXPECT_EQ(options.ring_lines | options.buffers | options.buf_bytes | options.queue_buffers |
                  options.inline_max | options.max_message | options.tx_mbufs | options.tx_room,
              0U);
    ntbmsg_endpoint_options_init(nullptr);
}

/// The options of a later version of the library.
struct Later {
    ntbmsg_endpoint_options known;
    uint64_t more[4];
};

int open_with(ntbmsg_endpoint_options &options, size_t size)
{
    ntbmsg_endpoint *endpoint = nullptr;
    options.size = size;
    return ntbmsg_endpoint_open("no_such_device", &options, &endpoint);
}

TEST(Options, OfALaterLibraryAreTakenIfTheySetNothingMore)
{
    Later later{};
    ntbmsg_endpoint_options_init(&later.known);
    EXPECT_EQ(open_with(later.known, sizeof(later)), -ENODEV);
    later.more[3] = 1;
    EXPECT_EQ(open_with(later.known, sizeof(later)), -E2BIG);
    EXPECT_EQ(open_with(later.known, sizeof(later) - 8), -ENODEV);
    EXPECT_EQ(open_with(later.known, 4104), -EINVAL);
}

TEST(Options, OfAnEarlierLibraryLackWhatCameLater)
{
    ntbmsg_endpoint_options options;
    ntbmsg_endpoint_options_init(&options);
    options.workers = 65; // not looked at: behind the end
    EXPECT_EQ(open_with(options, offsetof(ntbmsg_endpoint_options, workers)), -ENODEV);
    EXPECT_EQ(open_with(options, sizeof(options)), -EINVAL);
    EXPECT_EQ(open_with(options, offsetof(ntbmsg_endpoint_options, tx_mbufs)), -EINVAL)
        << "less than the first version";
}

TEST(Options, WorkersNeedMessagesOf256Bytes)
{
    ntbmsg_endpoint_options options;
    ntbmsg_endpoint_options_init(&options);
    ntbmsg_endpoint *endpoint = nullptr;
    options.max_message = 255;
    EXPECT_EQ(ntbmsg_endpoint_open("no_such_device", &options, &endpoint), -ENODEV);
    options.workers = 1;
    EXPECT_EQ(ntbmsg_endpoint_open("no_such_device", &options, &endpoint), -EINVAL);
    options.max_message = 256;
    EXPECT_EQ(ntbmsg_endpoint_open("no_such_device", &options, &endpoint), -ENODEV);
}

TEST(Options, InRangeOnesReachTheLookUpOfTheDevice)
{
    ntbmsg_endpoint_options options;
    ntbmsg_endpoint_options_init(&options);
    options.queues = 64;
    options.ring_lines = 65536;
    options.buf_bytes = 65280;
    options.inline_max = 1024;
    options.max_message = (1U << 24) - 1;
    options.tx_room = 65280;
    ntbmsg_endpoint *endpoint = nullptr;
    EXPECT_EQ(ntbmsg_endpoint_open("no_such_device", &options, &endpoint), -ENODEV);
}

} // namespace
