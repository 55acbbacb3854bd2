// SPDX-License-Identifier: BSD-3-Clause
#include "measure/make_work.hpp"

#include <algorithm>

#include "measure/echo_back.hpp"
#include "measure/in_place.hpp"
#include "measure/one_sided.hpp"
#include "measure/round_trips.hpp"
#include "measure/stream.hpp"
#include "transport/transport.hpp"

namespace pktgen
{

namespace
{

/// Of one end. One-sided round trips go one way: the requester has the answer.
Sides sides_of(const Point &point, bool client)
{
    const bool both = point.direction == Direction::both;
    const bool to_server = both || point.direction == Direction::out ||
                           (point.direction == Direction::echo && is_one_sided(point.operation));
    const bool to_client = both || point.direction == Direction::in;
    return client ? Sides{to_server, to_client} : Sides{to_client, to_server};
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

template <typename Transport>
std::unique_ptr<Work> client_work(Transport transport, ntbmsg_endpoint *endpoint,
                                  const Point &point, const ClientExtras &extras, Timings &timings)
{
    if (extras.in_place)
        return std::make_unique<InPlace<Transport>>(transport, point, Sizes(point));
    Maker maker = maker_of(endpoint, point, extras.content, extras.replay);
    if (point.direction == Direction::echo)
        return std::make_unique<RoundTrips<Transport>>(transport, point, std::move(maker), timings);
    const Packets *pace = extras.recorded_pace ? extras.content : nullptr;
    return std::make_unique<Stream<Transport>>(transport, point, sides_of(point, true),
                                               std::move(maker), pace, extras.capture);
}

template <typename Transport>
std::unique_ptr<Work> server_work(Transport transport, ntbmsg_endpoint *endpoint,
                                  const Point &point, Capture *capture)
{
    if (point.direction == Direction::echo)
        return std::make_unique<EchoBack<Transport>>(transport, point);
    Maker maker = maker_of(endpoint, point, nullptr, false);
    return std::make_unique<Stream<Transport>>(transport, point, sides_of(point, false),
                                               std::move(maker), nullptr, capture);
}

Timings &more_timings(Notebook &notebook)
{
    notebook.timings.push_back(std::make_unique<Timings>());
    return *notebook.timings.back();
}

std::unique_ptr<Work> one_sided_work(const Transports &transports, const Point &point,
                                     uint32_t lane, bool client, Notebook &notebook)
{
    if (notebook.uniques == nullptr && point.verify && point.operation == Operation::fetch_add)
        notebook.uniques = std::make_unique<Uniques>();
    const Setup setup{transports.endpoint, transports.channels->at(lane), lane,
                      transports.region,   &more_timings(notebook),       notebook.uniques.get()};
    return std::make_unique<OneSided>(setup, point, sides_of(point, client));
}

} // namespace

bool exposes(const Point &point, bool client)
{
    return is_one_sided(point.operation) && sides_of(point, client).receives;
}

void make_client_works(const Transports &transports, const Point &point, const ClientExtras &extras,
                       Notebook &notebook, Works &works)
{
    for (uint32_t lane = 0; lane < point.queues; ++lane) {
        const Point part = part_of(point, lane);
        if (is_one_sided(point.operation))
            works.push_back(one_sided_work(transports, part, lane, true, notebook));
        else if (point.operation == Operation::send)
            works.push_back(client_work(ChannelTransport(transports.channels->at(lane)),
                                        transports.endpoint, part, extras, more_timings(notebook)));
        else
            works.push_back(client_work(QueueTransport(transports.endpoint, lane),
                                        transports.endpoint, part, extras, more_timings(notebook)));
    }
}

void make_server_works(const Transports &transports, const Point &point, Capture *capture,
                       Notebook &notebook, Works &works)
{
    for (uint32_t lane = 0; lane < point.queues; ++lane) {
        const Point part = part_of(point, lane);
        if (is_one_sided(point.operation))
            works.push_back(one_sided_work(transports, part, lane, false, notebook));
        else if (point.operation == Operation::send)
            works.push_back(server_work(ChannelTransport(transports.channels->at(lane)),
                                        transports.endpoint, part, capture));
        else
            works.push_back(server_work(QueueTransport(transports.endpoint, lane),
                                        transports.endpoint, part, capture));
    }
}

} // namespace pktgen
