// SPDX-License-Identifier: BSD-3-Clause
// Defaults and ranges of an endpoint's options.
#include <bit>
#include <cerrno>

#include <ranges.hpp>

#include "base/log.hpp"
#include "endpoint/endpoint.hpp"

namespace ntbmsg
{

namespace
{

using Options = ntbmsg_endpoint_options;

enum class Shape { any, line_multiple, power_of_two };

/// A value of 0 outside the range stands for the default.
struct Bound {
    const char *name;
    uint32_t Options::*field;
    ntb::Range range;
    Shape shape = Shape::any;
};

// The headers' comments have them too; the test `guide` compares. What depends on the device is
// checked by the driver.
namespace ranges = ntb::ranges;
static_assert(ranges::max_message.high == NTBMSG_MAX_MESSAGE);
static_assert(ranges::queues.high == RTE_PMD_PLX_NTB_MAX_QUEUES);

constexpr Bound bounds[] = {
    {"queues", &Options::queues, {0, ranges::queues.high}},
    {"ring_lines", &Options::ring_lines, ranges::ring_lines, Shape::power_of_two},
    {"buffers", &Options::buffers, ranges::buffers},
    {"buf_bytes", &Options::buf_bytes, ranges::buf_bytes, Shape::line_multiple},
    {"queue_buffers", &Options::queue_buffers, ranges::queue_buffers},
    {"inline_max", &Options::inline_max, ranges::inline_max},
    {"max_message", &Options::max_message, ranges::max_message},
    {"tx_mbufs", &Options::tx_mbufs, {1, 1048576}},
    {"tx_room", &Options::tx_room, ranges::buf_bytes, Shape::line_multiple},
    {"workers", &Options::workers, {0, ranges::queues.high}},
    {"dedicated", &Options::dedicated, {0, 1}},
    {"service", &Options::service, {0, 1}},
    {"channels", &Options::channels, {16, 65535}},
    {"rx_mbufs", &Options::rx_mbufs, {512, 1048576}},
};
constexpr uint32_t line_bytes = 64;

bool fits(uint32_t value, const Bound &b)
{
    if (!b.range.has(value))
        return false;
    return b.shape == Shape::any ||
           (b.shape == Shape::line_multiple ? value % line_bytes == 0 : std::has_single_bit(value));
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
    for (const Bound &b : bounds) {
        const uint32_t value = o.*b.field;
        if (value != 0 && !fits(value, b)) {
            NTBMSG_LOG(ERR, "option %s is %u, must be %u to %u%s", b.name, value, b.range.low,
                       b.range.high, name_of(b.shape));
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
