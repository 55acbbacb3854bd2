// SPDX-License-Identifier: BSD-3-Clause
// Defaults and ranges of an endpoint's options.
#include <bit>
#include <cerrno>

#include "base/log.hpp"
#include "endpoint/endpoint.hpp"

namespace ntbmsg
{

namespace
{

using Options = ntbmsg_endpoint_options;

enum class Shape { any, line_multiple, power_of_two };

/// A value of 0 outside the range stands for the default.
struct Range {
    const char *name;
    uint32_t Options::*field;
    uint32_t low, high;
    Shape shape = Shape::any;
};

// The same as in the headers' comments and in the driver's table; the test `guide` compares them.
// What depends on the device is checked by the driver.
constexpr Range ranges[] = {
    {"queues", &Options::queues, 0, 64},
    {"ring_lines", &Options::ring_lines, 64, 65536, Shape::power_of_two},
    {"buffers", &Options::buffers, 64, 1048576},
    {"buf_bytes", &Options::buf_bytes, 64, 65280, Shape::line_multiple},
    {"queue_buffers", &Options::queue_buffers, 14, 8190},
    {"inline_max", &Options::inline_max, 48, 1024},
    {"max_message", &Options::max_message, 1, NTBMSG_MAX_MESSAGE},
    {"tx_mbufs", &Options::tx_mbufs, 1, 1048576},
    {"tx_room", &Options::tx_room, 64, 65280, Shape::line_multiple},
    {"workers", &Options::workers, 0, 64},
    {"dedicated", &Options::dedicated, 0, 1},
    {"service", &Options::service, 0, 1},
    {"channels", &Options::channels, 16, 65535},
    {"rx_mbufs", &Options::rx_mbufs, 512, 1048576},
};
constexpr uint32_t line_bytes = 64;

bool fits(uint32_t value, const Range &r)
{
    if (value < r.low || value > r.high)
        return false;
    return r.shape == Shape::any ||
           (r.shape == Shape::line_multiple ? value % line_bytes == 0 : std::has_single_bit(value));
}

const char *name_of(Shape shape)
{
    return shape == Shape::any             ? ""
           : shape == Shape::line_multiple ? ", a multiple of 64"
                                           : ", a power of two";
}

int refuse(const char *name, uint32_t value, const char *range)
{
    NTBMSG_LOG(ERR, "option %s is %u, must be %s", name, value, range);
    return -EINVAL;
}

} // namespace

int check_options(const ntbmsg_endpoint_options &o)
{
    for (const Range &r : ranges) {
        const uint32_t value = o.*r.field;
        if (value != 0 && !fits(value, r)) {
            NTBMSG_LOG(ERR, "option %s is %u, must be %u to %u%s", r.name, value, r.low, r.high,
                       name_of(r.shape));
            return -EINVAL;
        }
    }
    if (o.queues == 0 && o.workers == 0)
        return refuse("queues", o.queues, "1 or more with no workers");
    if (o.workers > RTE_PMD_PLX_NTB_MAX_QUEUES - o.queues)
        return refuse("workers", o.workers, "at most 64 together with queues");
    if (o.service == 1 && o.dedicated == 0)
        return refuse("service", o.service, "0, or 1 with dedicated = 1");
    if (o.workers != 0 && o.max_message != 0 && o.max_message < protocol::min_message)
        return refuse("max_message", o.max_message, "256 or more with workers");
    return 0;
}

} // namespace ntbmsg
