// SPDX-License-Identifier: BSD-3-Clause
// Addresses, and the way of an id from bound to over.
#include "cm/manager.hpp"

#include <utility>

#include <endian.h>

#include "ntbv.h"

namespace ntb::verbs::cm
{
namespace
{

constexpr std::uint32_t mask_24 = 0xffffff;
constexpr std::uint16_t first_drawn_port = 32768, drawn_ports = 28232;
constexpr int most_draws = 100;
constexpr std::uint32_t datagram_qkey = 0x01234567;
constexpr std::uint16_t whole_pkey = 0xffff;
constexpr std::uint8_t exactly = 2, mtu_4096 = 5, rate_100_gbps = 16;
constexpr std::uint8_t most_retries = 7;

std::uint8_t at_most_reads(std::uint8_t wanted)
{
    return std::min<std::uint8_t>(wanted, NTBV_MAX_READS);
}

Side side_of(const Message &message)
{
    Side side = {message.qpn, message.psn, message.lid, {}};
    std::memcpy(side.gid, message.gid, sizeof(side.gid));
    return side;
}

bool knows_route(const Id &id)
{
    return id.state >= State::Routed;
}

} // namespace

// ---- addresses

// Claims the port of an id's own address, or one that is free.
int Manager::claim(Id &id)
{
    const bool any_port = id.source.port == 0;
    int error = -EADDRINUSE;
    for (int i = 0; i < (any_port ? most_draws : 1) && error == -EADDRINUSE; ++i) {
        if (any_port)
            id.source.port =
                static_cast<std::uint16_t>(first_drawn_port + host_.random() % drawn_ports);
        error = carrier_.claim({id.space, id.source.port});
    }
    id.is_claimed = error == 0;
    return error;
}

int Manager::bind(Id &id, const Address &address)
{
    if (id.state != State::Idle)
        return -EINVAL;
    if (!is_any(address) && !host_.is_own(address))
        return -EADDRNOTAVAIL;
    id.source = address;
    if (const int error = claim(id)) {
        id.source = {};
        return error;
    }
    id.has_device = !is_any(address);
    id.state = State::Bound;
    return 0;
}

int Manager::bind_ip(Channel &channel, const Command &command)
{
    rdma_ucm_bind_ip wanted;
    int error = command.get(wanted);
    Id *const id = error == 0 ? find(channel, wanted.id, error) : nullptr;
    if (!id)
        return error;
    Address address;
    return from_sockaddr(wanted.addr, address) ? bind(*id, address) : -EINVAL;
}

int Manager::resolve_ip(Channel &channel, const Command &command)
{
    rdma_ucm_resolve_ip wanted;
    int error = command.get(wanted);
    Id *const id = error == 0 ? find(channel, wanted.id, error) : nullptr;
    if (!id)
        return error;
    Address from = id->source, to;
    if (!from_sockaddr(wanted.dst_addr, to) || is_any(to))
        return -EINVAL;
    if (id->state == State::Idle) {
        if (wanted.src_addr.sin6_family != 0 && !from_sockaddr(wanted.src_addr, from))
            return -EINVAL;
        const bool any = wanted.src_addr.sin6_family == 0 || is_any(from);
        if (!any && !host_.is_own(from))
            return -EADDRNOTAVAIL;
        if (any) {
            const std::uint16_t port = wanted.src_addr.sin6_family == 0 ? 0 : from.port;
            from = host_.source_for(to);
            from.port = port;
        }
    } else if (id->state == State::Bound) {
        if (is_any(from)) {
            from = host_.source_for(to);
            from.port = id->source.port;
        }
    } else {
        return -EINVAL;
    }
    if (is_ipv4(from) != is_ipv4(to) && !is_any(from))
        return -EINVAL;
    if (const int unknown = host_.check_peer(to))
        return unknown;
    if (id->state == State::Idle) {
        id->source = from;
        // A port that was asked for is claimed; a number for one that only connects is not.
        if (from.port == 0)
            id->source.port =
                static_cast<std::uint16_t>(first_drawn_port + host_.random() % drawn_ports);
        else if (const int taken = claim(*id)) {
            id->source = {};
            return taken;
        }
    } else {
        id->source = from;
    }
    id->destination = to;
    id->has_device = true;
    id->state = State::Resolved;
    post(*id, Event::AddrResolved, 0, nullptr);
    return 0;
}

int Manager::resolve_route(Channel &channel, const Command &command)
{
    rdma_ucm_resolve_route wanted;
    int error = command.get(wanted);
    Id *const id = error == 0 ? find(channel, wanted.id, error) : nullptr;
    if (!id)
        return error;
    if (id->state != State::Resolved)
        return -EINVAL;
    // Who sends datagrams takes the LID from the route; a connection learns it from the answer.
    if (id->type == type_ud) {
        id->state = State::Routing;
        id->link = carrier_.locate({id->space, id->destination.port}, host_.is_own(id->destination),
                                   wanted.timeout_ms);
        return 0;
    }
    id->state = State::Routed;
    post(*id, Event::RouteResolved, 0, nullptr);
    return 0;
}

void Manager::located(Link link, std::uint16_t lid)
{
    Id *const id = by_link(link);
    if (!id)
        return;
    id->link = 0;
    id->peer.lid = lid;
    id->state = State::Routed;
    post(*id, Event::RouteResolved, 0, nullptr);
}

int Manager::query_route(Channel &channel, const Command &command)
{
    rdma_ucm_query wanted;
    int error = command.get(wanted, offsetof(rdma_ucm_query, option));
    Id *const id = error == 0 ? find(channel, wanted.id, error) : nullptr;
    if (!id)
        return error;
    rdma_ucm_query_route_resp route = {};
    if (id->state != State::Idle)
        route.src_addr = to_sockaddr(id->source);
    if (id->destination.port != 0 || !is_any(id->destination))
        route.dst_addr = to_sockaddr(id->destination);
    if (id->has_device) {
        const DevicePort port = host_.device_port();
        route.node_guid = host_.node_guid();
        route.ibdev_index = host_.device_index();
        route.port_num = 1;
        ib_user_path_rec &path = route.ib_route[0];
        std::memcpy(path.sgid, port.gid, sizeof(path.sgid));
        std::memcpy(path.dgid, id->peer.gid, sizeof(path.dgid));
        path.pkey = whole_pkey;
        route.num_paths = knows_route(*id) ? 1 : 0;
        if (route.num_paths != 0) {
            path.slid = htobe16(port.lid);
            path.dlid = htobe16(id->peer.lid);
            path.reversible = 1;
            path.numb_path = 1;
            path.mtu_selector = path.rate_selector = path.packet_life_time_selector = exactly;
            path.mtu = mtu_4096;
            path.rate = rate_100_gbps;
        }
    }
    return command.answer(wanted.response, route, offsetof(rdma_ucm_query_route_resp, ibdev_index));
}

// ---- connections

// What an end says of itself in a request or an answer.
Message Manager::introduce(Kind kind, const Id &id, const rdma_ucm_conn_param &param)
{
    const DevicePort port = host_.device_port();
    Message message = message_of(kind);
    message.type = id.type;
    message.lid = port.lid;
    message.qpn = param.qp_num;
    message.psn = id.psn;
    message.qkey = param.qkey != 0 ? param.qkey : datagram_qkey;
    message.srq = param.srq;
    message.responder_resources = param.responder_resources;
    message.initiator_depth = param.initiator_depth;
    message.flow_control = param.flow_control;
    message.retry_count = std::min(param.retry_count, most_retries);
    message.rnr_retry_count = std::min(param.rnr_retry_count, most_retries);
    std::memcpy(message.gid, port.gid, sizeof(message.gid));
    message.private_bytes = param.private_data_len;
    std::memcpy(message.private_data, param.private_data, param.private_data_len);
    return message;
}

int Manager::connect(Channel &channel, const Command &command)
{
    rdma_ucm_connect wanted;
    int error = command.get(wanted, offsetof(rdma_ucm_connect, ece));
    Id *const id = error == 0 ? find(channel, wanted.id, error) : nullptr;
    if (!id)
        return error;
    const rdma_ucm_conn_param &param = wanted.conn_param;
    if (id->state != State::Routed || param.valid == 0 || param.qp_num > mask_24 ||
        param.private_data_len > private_room(Kind::Req, id->type))
        return -EINVAL;
    if (host_.device_port().lid == 0)
        return -ENODEV;
    id->psn = host_.random() & mask_24;
    Message message = introduce(Kind::Req, *id, param);
    std::memcpy(message.source, id->source.bytes, sizeof(message.source));
    std::memcpy(message.destination, id->destination.bytes, sizeof(message.destination));
    message.source_port = id->source.port;
    message.destination_port = id->destination.port;
    id->retry_count = message.retry_count;
    id->responder_resources = param.responder_resources;
    id->initiator_depth = param.initiator_depth;
    id->state = State::Connecting;
    id->link =
        carrier_.connect({id->space, id->destination.port}, host_.is_own(id->destination), message);
    return 0;
}

int Manager::listen(Channel &channel, const Command &command)
{
    rdma_ucm_listen wanted;
    int error = command.get(wanted);
    Id *const id = error == 0 ? find(channel, wanted.id, error) : nullptr;
    if (!id)
        return error;
    if (id->state == State::Idle) {
        Address any = {};
        std::memcpy(any.bytes, mapped_prefix, sizeof(mapped_prefix));
        error = bind(*id, any);
        if (error != 0)
            return error;
    }
    if (id->state != State::Bound)
        return -EINVAL;
    id->backlog =
        wanted.backlog != 0 && wanted.backlog < max_backlog ? wanted.backlog : max_backlog;
    id->state = State::Listening;
    return 0;
}

int Manager::accept(Channel &channel, const Command &command)
{
    rdma_ucm_accept wanted;
    int error = command.get(wanted, offsetof(rdma_ucm_accept, ece));
    Id *const id = error == 0 ? find(channel, wanted.id, error) : nullptr;
    if (!id)
        return error;
    // Its peer has gone before it could be reported to the program.
    if (id->state == State::Over)
        return -ECONNRESET;
    if (wanted.conn_param.valid != 0) {
        if (id->state != State::Requested)
            return -EINVAL;
        id->uid = wanted.uid;
        return say_accepted(*id, wanted.conn_param);
    }
    if (id->state != State::Replied)
        return -EINVAL;
    Message message = message_of(Kind::Rtu);
    message.type = id->type;
    id->state = send(*id, message) ? State::Connected : State::Over;
    return id->state == State::Connected ? 0 : -ECONNRESET;
}

int Manager::say_accepted(Id &id, const rdma_ucm_conn_param &param)
{
    if (param.qp_num > mask_24 || param.private_data_len > private_room(Kind::Rep, id.type))
        return -EINVAL;
    if (host_.device_port().lid == 0)
        return -ENODEV;
    const Message message = introduce(Kind::Rep, id, param);
    id.responder_resources = param.responder_resources;
    id.initiator_depth = param.initiator_depth;
    if (!send(id, message)) {
        id.state = State::Over;
        return -ECONNRESET;
    }
    id.state = State::Accepted;
    if (id.type == type_ud) {
        close_link(id);
        id.state = State::Over;
    }
    return 0;
}

int Manager::reject(Channel &channel, const Command &command)
{
    rdma_ucm_reject wanted;
    int error = command.get(wanted);
    Id *const id = error == 0 ? find(channel, wanted.id, error) : nullptr;
    if (!id)
        return error;
    if ((id->state != State::Requested && id->state != State::Replied) ||
        wanted.private_data_len > private_room(Kind::Rej, id->type))
        return -EINVAL;
    Message message = message_of(Kind::Rej);
    message.type = id->type;
    message.reason = wanted.reason != 0 ? wanted.reason : reason::consumer_defined;
    message.private_bytes = wanted.private_data_len;
    std::memcpy(message.private_data, wanted.private_data, wanted.private_data_len);
    send(*id, message);
    close_link(*id);
    id->state = State::Over;
    return 0;
}

int Manager::disconnect(Channel &channel, const Command &command)
{
    rdma_ucm_disconnect wanted;
    int error = command.get(wanted);
    Id *const id = error == 0 ? find(channel, wanted.id, error) : nullptr;
    if (!id)
        return error;
    if (id->type == type_ud || id->state < State::Replied || id->state == State::Requested)
        return -EINVAL;
    if (id->state == State::Disconnecting || id->state == State::Over)
        return 0;
    Message message = message_of(Kind::Dreq);
    message.type = id->type;
    if (send(*id, message)) {
        id->state = State::Disconnecting;
        return 0;
    }
    id->state = State::Over;
    post(*id, Event::Disconnected, 0, nullptr);
    return 0;
}

// The first data may be here before the peer's last word: the connection is made then.
int Manager::notify(Channel &channel, const Command &command)
{
    constexpr std::uint32_t communication_established = 4; // IBV_EVENT_COMM_EST
    rdma_ucm_notify wanted;
    int error = command.get(wanted);
    Id *const id = error == 0 ? find(channel, wanted.id, error) : nullptr;
    if (!id)
        return error;
    if (wanted.event != communication_established || id->state < State::Accepted)
        return -EINVAL;
    if (id->state == State::Accepted) {
        id->state = State::Connected;
        post(*id, Event::Established, 0, nullptr);
    }
    return 0;
}

// ---- what peers say

void Manager::refuse(Link link, std::uint8_t type, std::uint32_t reason)
{
    Message message = message_of(Kind::Rej);
    message.type = type;
    message.reason = reason;
    if (carrier_.send(link, message))
        carrier_.close(link);
}

void Manager::request(Link link, Port port, const Message &message)
{
    if (message.kind != Kind::Req)
        return carrier_.close(link);
    Id *const listener = by_port(port);
    Address asked;
    std::memcpy(asked.bytes, message.destination, sizeof(asked.bytes));
    asked.port = message.destination_port;
    const bool fits = listener && listener->state == State::Listening &&
                      listener->type == message.type && asked.port == port.number &&
                      host_.is_own(asked) &&
                      (is_any(listener->source) ? is_ipv4(asked) == is_ipv4(listener->source) ||
                                                      (is_ipv4(asked) && !listener->is_v6_only)
                                                : is_same_host(asked, listener->source));
    if (!fits)
        return refuse(link, message.type, reason::invalid_service);
    Id *const id = listener->backlog != 0
                       ? make_id(listener->channel, listener->space, listener->type)
                       : nullptr;
    if (!id)
        return refuse(link, message.type, reason::no_resources);
    --listener->backlog;
    id->is_passive = true;
    id->has_device = true;
    id->link = link;
    id->source = asked;
    std::memcpy(id->destination.bytes, message.source, sizeof(id->destination.bytes));
    id->destination.port = message.source_port;
    id->psn = host_.random() & mask_24; // asked for before it is accepted
    id->peer = side_of(message);
    id->responder_resources = at_most_reads(message.initiator_depth);
    id->initiator_depth = at_most_reads(message.responder_resources);
    id->retry_count = message.retry_count;
    id->rnr_retry_count = message.rnr_retry_count;
    id->state = State::Requested;
    post(*listener, Event::ConnectRequest, 0, &message, id);
}

void Manager::take_reply(Id &id, const Message &message)
{
    id.peer = side_of(message);
    id.responder_resources = at_most_reads(message.initiator_depth);
    id.initiator_depth = at_most_reads(message.responder_resources);
    id.rnr_retry_count = message.rnr_retry_count;
    if (id.type == type_ud) {
        close_link(id);
        id.state = State::Over;
        return post(id, Event::Established, 0, &message);
    }
    id.state = State::Replied;
    post(id, Event::ConnectResponse, 0, &message);
}

void Manager::message(Link link, const Message &message)
{
    Id *const id = by_link(link);
    if (!id)
        return;
    const State state = id->state;
    if (message.type != id->type)
        return unexpected(*id);
    switch (message.kind) {
    case Kind::Rep:
        return state == State::Connecting ? take_reply(*id, message) : unexpected(*id);
    case Kind::Rtu:
        if (state == State::Accepted) {
            id->state = State::Connected;
            return post(*id, Event::Established, 0, nullptr);
        }
        // After the program's own word that data have come.
        return state == State::Connected || state == State::Disconnecting ? void()
                                                                          : unexpected(*id);
    case Kind::Rej:
        if (state != State::Connecting && state != State::Accepted)
            return unexpected(*id);
        close_link(*id);
        id->state = State::Over;
        return post(*id, Event::Rejected, static_cast<std::int32_t>(message.reason & 0xff),
                    &message);
    case Kind::Dreq: {
        if (state != State::Connected && state != State::Disconnecting && state != State::Accepted)
            return unexpected(*id);
        Message answer = message_of(Kind::Drep);
        answer.type = id->type;
        send(*id, answer);
        close_link(*id);
        id->state = State::Over;
        return post(*id, Event::Disconnected, 0, nullptr);
    }
    case Kind::Drep:
        if (state != State::Disconnecting)
            return unexpected(*id);
        close_link(*id);
        id->state = State::Over;
        return post(*id, Event::Disconnected, 0, nullptr);
    case Kind::Req:
        return unexpected(*id);
    }
}

void Manager::unexpected(Id &id)
{
    const Link link = id.link;
    carrier_.close(link);
    lost(link, -EPROTO);
}

void Manager::lost(Link link, int error)
{
    Id *const id = by_link(link);
    if (!id)
        return;
    id->link = 0;
    if (id->state == State::Routing) {
        id->state = State::Resolved; // and may be tried again
        return post(*id, Event::RouteError, error, nullptr);
    }
    const State state = std::exchange(id->state, State::Over);
    if (state == State::Connecting && error == -ECONNREFUSED)
        post(*id, Event::Rejected, static_cast<std::int32_t>(reason::invalid_service), nullptr);
    else if (state == State::Connecting || state == State::Accepted)
        post(*id, Event::Unreachable, error, nullptr);
    else if (state == State::Connected || state == State::Disconnecting)
        post(*id, Event::Disconnected, 0, nullptr);
    // A request that was not accepted, and an answer that was not confirmed: the program's next
    // call fails.
}

} // namespace ntb::verbs::cm
