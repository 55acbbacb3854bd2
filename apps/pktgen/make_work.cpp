// SPDX-License-Identifier: BSD-3-Clause
#include "make_work.hpp"

#include "echo_back.hpp"
#include "port.hpp"
#include "stream.hpp"

namespace pktgen
{

namespace
{

/// As the end at the other side sees it.
StreamSides sides_of(Way way, bool driver)
{
    const bool to_server = way == Way::out || way == Way::both;
    const bool to_driver = way == Way::in || way == Way::both;
    return driver ? StreamSides{to_server, to_driver} : StreamSides{to_driver, to_server};
}

Maker maker_of(ntbmsg_endpoint *endpoint, const Point &point, const Packets *content, bool replay)
{
    return Maker(ntbmsg_pool(endpoint), point,
                 content != nullptr ? Sizes(content->sizes()) : Sizes(point),
                 replay ? content : nullptr);
}

template <typename Port>
std::unique_ptr<Work> driver_work(Port port, ntbmsg_endpoint *endpoint, const Point &point,
                                  const DriverExtras &extras, uint64_t now)
{
    Maker maker = maker_of(endpoint, point, extras.content, extras.replay);
    if (point.way == Way::echo)
        return std::make_unique<RoundTrips<Port>>(port, point, now, std::move(maker),
                                                  *extras.timings);
    const Packets *pace = extras.recorded_pace ? extras.content : nullptr;
    return std::make_unique<Stream<Port>>(port, point, now, sides_of(point.way, true),
                                          std::move(maker), pace, extras.capture);
}

template <typename Port>
std::unique_ptr<Work> server_work(Port port, ntbmsg_endpoint *endpoint, const Point &point,
                                  Capture *capture, uint64_t now)
{
    if (point.way == Way::echo)
        return std::make_unique<EchoBack<Port>>(port, point, now);
    Maker maker = maker_of(endpoint, point, nullptr, false);
    return std::make_unique<Stream<Port>>(port, point, now, sides_of(point.way, false),
                                          std::move(maker), nullptr, capture);
}

} // namespace

std::unique_ptr<Work> make_driver_work(const Ways &ways, const Point &point,
                                       const DriverExtras &extras, uint64_t now)
{
    if (point.operation == Operation::send)
        return driver_work(ChannelPort(*ways.channels), ways.endpoint, point, extras, now);
    return driver_work(QueuePort(ways.endpoint), ways.endpoint, point, extras, now);
}

std::unique_ptr<Work> make_server_work(const Ways &ways, const Point &point, Capture *capture,
                                       uint64_t now)
{
    if (point.operation == Operation::send)
        return server_work(ChannelPort(*ways.channels), ways.endpoint, point, capture, now);
    return server_work(QueuePort(ways.endpoint), ways.endpoint, point, capture, now);
}

} // namespace pktgen
