// SPDX-License-Identifier: BSD-3-Clause
#include "measure/make_work.hpp"

#include <algorithm>

#include "measure/echo_back.hpp"
#include "measure/in_place.hpp"
#include "measure/one_sided.hpp"
#include "measure/round_trips.hpp"
#include "measure/stream.hpp"
#include "transport/carrier.hpp"

namespace pktgen
{

namespace
{

/// Of one end. One-sided round trips go one way: the requester has the answer.
Sides sides_of(const Point &point, bool driver)
{
    const bool both = point.way == Way::both;
    const bool to_server =
        both || point.way == Way::out || (point.way == Way::echo && is_one_sided(point.operation));
    const bool to_driver = both || point.way == Way::in;
    return driver ? Sides{to_server, to_driver} : Sides{to_driver, to_server};
}

/// What one queue does of it.
Point part_of(const Point &point, uint32_t lane)
{
    Point part = point;
    if (point.count != 0) // 0 would be no limit
        part.count = std::max<uint64_t>(1, (point.count + point.queues - 1 - lane) / point.queues);
    part.rate = point.rate / point.queues;
    return part;
}

Maker maker_of(ntbmsg_endpoint *endpoint, const Point &point, const Packets *content, bool replay)
{
    return Maker(ntbmsg_endpoint_pool(endpoint), point,
                 content != nullptr ? Sizes(content->sizes()) : Sizes(point),
                 replay ? content : nullptr);
}

template <typename Carrier>
std::unique_ptr<Work> driver_work(Carrier carrier, ntbmsg_endpoint *endpoint, const Point &point,
                                  const DriverExtras &extras, Timings &timings)
{
    if (extras.in_place)
        return std::make_unique<InPlace<Carrier>>(carrier, point, Sizes(point));
    Maker maker = maker_of(endpoint, point, extras.content, extras.replay);
    if (point.way == Way::echo)
        return std::make_unique<RoundTrips<Carrier>>(carrier, point, std::move(maker), timings);
    const Packets *pace = extras.recorded_pace ? extras.content : nullptr;
    return std::make_unique<Stream<Carrier>>(carrier, point, sides_of(point, true),
                                             std::move(maker), pace, extras.capture);
}

template <typename Carrier>
std::unique_ptr<Work> server_work(Carrier carrier, ntbmsg_endpoint *endpoint, const Point &point,
                                  Capture *capture)
{
    if (point.way == Way::echo)
        return std::make_unique<EchoBack<Carrier>>(carrier, point);
    Maker maker = maker_of(endpoint, point, nullptr, false);
    return std::make_unique<Stream<Carrier>>(carrier, point, sides_of(point, false),
                                             std::move(maker), nullptr, capture);
}

Timings &more_timings(Notebook &notebook)
{
    notebook.timings.push_back(std::make_unique<Timings>());
    return *notebook.timings.back();
}

std::unique_ptr<Work> one_sided_work(const Ways &ways, const Point &point, uint32_t lane,
                                     bool driver, Notebook &notebook)
{
    if (notebook.uniques == nullptr && point.verify && point.operation == Operation::fetch_add)
        notebook.uniques = std::make_unique<Uniques>();
    const Setup setup{ways.endpoint, ways.channels->at(lane), lane,
                      ways.region,   &more_timings(notebook), notebook.uniques.get()};
    return std::make_unique<OneSided>(setup, point, sides_of(point, driver));
}

} // namespace

bool exposes(const Point &point, bool driver)
{
    return is_one_sided(point.operation) && sides_of(point, driver).receives;
}

void make_driver_works(const Ways &ways, const Point &point, const DriverExtras &extras,
                       Notebook &notebook, Works &works)
{
    for (uint32_t lane = 0; lane < point.queues; ++lane) {
        const Point part = part_of(point, lane);
        if (is_one_sided(point.operation))
            works.push_back(one_sided_work(ways, part, lane, true, notebook));
        else if (point.operation == Operation::send)
            works.push_back(driver_work(ChannelCarrier(ways.channels->at(lane)), ways.endpoint,
                                        part, extras, more_timings(notebook)));
        else
            works.push_back(driver_work(QueueCarrier(ways.endpoint, lane), ways.endpoint, part,
                                        extras, more_timings(notebook)));
    }
}

void make_server_works(const Ways &ways, const Point &point, Capture *capture, Notebook &notebook,
                       Works &works)
{
    for (uint32_t lane = 0; lane < point.queues; ++lane) {
        const Point part = part_of(point, lane);
        if (is_one_sided(point.operation))
            works.push_back(one_sided_work(ways, part, lane, false, notebook));
        else if (point.operation == Operation::send)
            works.push_back(
                server_work(ChannelCarrier(ways.channels->at(lane)), ways.endpoint, part, capture));
        else
            works.push_back(
                server_work(QueueCarrier(ways.endpoint, lane), ways.endpoint, part, capture));
    }
}

} // namespace pktgen
