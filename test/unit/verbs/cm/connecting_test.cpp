// SPDX-License-Identifier: BSD-3-Clause
// Two managers with a test between them, and one with a peer that lies.
#include "fakes.hpp"

#include "ntbv.h"

using namespace ntb::verbs::cm;
using namespace ntb::verbs::cm::test;

namespace
{

constexpr Link at_server = 1000;
constexpr std::uint64_t listener_uid = 5, server_uid = 6, client_uid = 7;
const Port port = {RDMA_PS_TCP, 7000};

class CmConnecting : public testing::Test
{
protected:
    void listen(std::uint16_t space = RDMA_PS_TCP, std::uint32_t backlog = 0)
    {
        listener = server.create(space, listener_uid);
        ASSERT_EQ(server.bind(listener, address("0.0.0.0", 7000)), 0);
        ASSERT_EQ(server.listen(listener, backlog), 0);
    }
    /// A client's request arrives.
    void request(std::uint16_t space = RDMA_PS_TCP, const std::string &data = "hello")
    {
        id = client.routed(space, client_uid, address("10.0.0.2", 7000));
        ASSERT_EQ(client.connect(id, Program::param(100, data)), 0);
        bring(client.carrier.take(), space);
    }
    void bring(const Message &message, std::uint16_t space = RDMA_PS_TCP)
    {
        server.carrier.open.insert(at_server);
        server.manager.request(at_server, {space, 7000}, message);
    }
    void to_client() { client.manager.message(client.carrier.last, server.carrier.take()); }
    void to_server() { server.manager.message(at_server, client.carrier.take()); }
    void connect()
    {
        listen();
        request();
        fresh = server.expect(Event::ConnectRequest, listener_uid).id;
        ASSERT_EQ(server.accept(fresh, server_uid, Program::param(200, "welcome")), 0);
        to_client();
        client.expect(Event::ConnectResponse, client_uid);
        ASSERT_EQ(client.confirm(id), 0);
        to_server();
        server.expect(Event::Established, server_uid);
    }
    std::uint32_t destroy(Program &program, std::uint32_t which)
    {
        std::uint32_t reported = 99;
        EXPECT_EQ(program.destroy(which, reported), 0);
        return reported;
    }

    Program client{"10.0.0.1", 1}, server{"10.0.0.2", 2};
    std::uint32_t listener = 0, id = 0, fresh = 0;
};

// ---- addresses

TEST_F(CmConnecting, AddressesAreOwnOnesOrOfTheMap)
{
    id = client.create(RDMA_PS_TCP, 1);
    EXPECT_EQ(client.bind(id, address("10.0.0.9", 1)), -EADDRNOTAVAIL);
    EXPECT_EQ(client.resolve(id, address("11.0.0.2", 7000)), -EHOSTUNREACH);
    EXPECT_EQ(client.resolve(id, address("0.0.0.0", 7000)), -EINVAL);
    const Address foreign = address("10.0.0.9", 0), own = address("10.0.0.1", 55);
    EXPECT_EQ(client.resolve(id, address("10.0.0.2", 7000), &foreign), -EADDRNOTAVAIL);
    client.expect_none();
    EXPECT_EQ(client.resolve(id, address("10.0.0.2", 7000), &own), 0);
    client.expect(Event::AddrResolved, 1);
    EXPECT_EQ(client.carrier.claimed.size(), 1u) << "a port that was asked for";
    rdma_ucm_bind_ip none = {};
    none.id = client.create(RDMA_PS_TCP, 1);
    EXPECT_EQ(client.command(RDMA_USER_CM_CMD_BIND_IP, none), -EINVAL) << "of no family";
}

TEST_F(CmConnecting, PortsAreClaimedOncePerSpace)
{
    id = client.create(RDMA_PS_TCP, 1);
    EXPECT_EQ(client.bind(id, address("0.0.0.0", 7000)), 0);
    EXPECT_EQ(client.bind(id, address("0.0.0.0", 7001)), -EINVAL) << "it is bound";
    const std::uint32_t other = client.create(RDMA_PS_TCP, 1);
    EXPECT_EQ(client.bind(other, address("10.0.0.1", 7000)), -EADDRINUSE);
    EXPECT_EQ(client.bind(other, address("10.0.0.1", 0)), 0) << "one is drawn";
    EXPECT_EQ(client.bind(client.create(RDMA_PS_UDP, 1), address("0.0.0.0", 7000)), 0);
    destroy(client, id);
    EXPECT_EQ(client.bind(client.create(RDMA_PS_TCP, 1), address("10.0.0.1", 7000)), 0);
}

TEST_F(CmConnecting, AQueryKnowsWhatIsKnown)
{
    id = client.create(RDMA_PS_TCP, 1);
    auto route = client.query(id);
    EXPECT_EQ(route.node_guid, 0u);
    EXPECT_EQ(route.src_addr.sin6_family, 0);
    EXPECT_EQ(client.bind(id, address("0.0.0.0", 0)), 0);
    EXPECT_EQ(client.query(id).node_guid, 0u) << "any address is of no device";
    EXPECT_EQ(client.resolve(id, address("10.0.0.2", 7000)), 0);
    route = client.query(id);
    EXPECT_EQ(route.node_guid, 0x1122u);
    EXPECT_EQ(route.ibdev_index, 9u);
    EXPECT_EQ(route.num_paths, 0u);
    Address source, destination;
    ASSERT_TRUE(from_sockaddr(route.src_addr, source) &&
                from_sockaddr(route.dst_addr, destination));
    EXPECT_TRUE(is_same_host(source, address("10.0.0.1", 0)));
    EXPECT_NE(source.port, 0);
    EXPECT_TRUE(is_same_host(destination, address("10.0.0.2", 0)));
    EXPECT_EQ(destination.port, 7000);
    EXPECT_EQ(client.route(id), 0);
    route = client.query(id);
    EXPECT_EQ(route.num_paths, 1u);
    EXPECT_EQ(route.ib_route[0].slid, htons(1));
    EXPECT_EQ(route.ib_route[0].pkey, 0xffff);
}

TEST_F(CmConnecting, TheRouteOfDatagramsHasThePeersLid)
{
    id = client.create(RDMA_PS_UDP, client_uid);
    EXPECT_EQ(client.resolve(id, address("10.0.0.2", 7000)), 0);
    client.expect(Event::AddrResolved, client_uid);
    EXPECT_EQ(client.route(id), 0);
    EXPECT_EQ(client.carrier.to, (Port{RDMA_PS_UDP, 7000}));
    EXPECT_FALSE(client.carrier.here);
    EXPECT_EQ(client.carrier.patience_ms, 1000u);
    client.expect_none();
    EXPECT_EQ(client.query(id).num_paths, 0u);
    EXPECT_EQ(client.route(id), -EINVAL) << "it is asked for";
    client.carrier.answer(client.manager, 0);
    EXPECT_EQ(client.expect(Event::RouteError, client_uid).status,
              static_cast<std::uint32_t>(-EHOSTUNREACH));
    EXPECT_EQ(client.route(id), 0) << "once more";
    client.carrier.answer(client.manager, 513);
    client.expect(Event::RouteResolved, client_uid);
    EXPECT_EQ(client.query(id).num_paths, 1u);
    EXPECT_EQ(client.query(id).ib_route[0].dlid, htons(513));
    // One that goes takes its question with it.
    const std::uint32_t other = client.create(RDMA_PS_UDP, 1);
    EXPECT_EQ(client.resolve(other, address("10.0.0.1", 7000)), 0);
    EXPECT_EQ(client.route(other), 0);
    EXPECT_TRUE(client.carrier.here) << "it is an address of this machine";
    destroy(client, other);
    EXPECT_TRUE(client.carrier.open.empty());
}

// ---- connections

TEST_F(CmConnecting, AConnectionFromRequestToEnd)
{
    listen();
    request();
    EXPECT_EQ(client.carrier.to, port);
    EXPECT_FALSE(client.carrier.here);
    const auto asked = server.expect(Event::ConnectRequest, listener_uid);
    fresh = asked.id;
    EXPECT_EQ(asked.param.conn.qp_num, 100u);
    EXPECT_EQ(asked.param.conn.private_data_len, 56);
    EXPECT_STREQ(reinterpret_cast<const char *>(asked.param.conn.private_data), "hello");
    EXPECT_EQ(asked.param.conn.responder_resources, 4) << "what the peer may have under way here";
    EXPECT_EQ(asked.param.conn.initiator_depth, 3);
    EXPECT_EQ(asked.param.conn.retry_count, 5);
    EXPECT_EQ(asked.param.conn.rnr_retry_count, 6);
    const auto route = server.query(fresh);
    Address source, destination;
    ASSERT_TRUE(from_sockaddr(route.src_addr, source) &&
                from_sockaddr(route.dst_addr, destination));
    EXPECT_EQ(source.port, 7000);
    EXPECT_TRUE(is_same_host(source, address("10.0.0.2", 0)));
    EXPECT_TRUE(is_same_host(destination, address("10.0.0.1", 0)));
    EXPECT_EQ(route.num_paths, 1u);

    ib_uverbs_qp_attr server_rtr, server_rts, client_rtr, client_rts;
    EXPECT_EQ(server.attributes(fresh, NTBV_RTR, server_rtr), 0) << "librdmacm asks before";
    EXPECT_EQ(server.attributes(fresh, NTBV_RTS, server_rts), 0);
    ASSERT_EQ(server.accept(fresh, server_uid, Program::param(200, "welcome")), 0);
    ib_uverbs_qp_attr early;
    EXPECT_EQ(client.attributes(id, NTBV_RTR, early), -EINVAL);
    to_client();
    const auto answered = client.expect(Event::ConnectResponse, client_uid);
    EXPECT_EQ(answered.id, id);
    EXPECT_EQ(answered.param.conn.qp_num, 200u);
    EXPECT_EQ(answered.param.conn.private_data_len, 196);
    EXPECT_STREQ(reinterpret_cast<const char *>(answered.param.conn.private_data), "welcome");
    EXPECT_EQ(client.attributes(id, NTBV_RTR, client_rtr), 0);
    EXPECT_EQ(client.attributes(id, NTBV_RTS, client_rts), 0);
    EXPECT_EQ(server_rtr.dest_qp_num, 100u);
    EXPECT_EQ(client_rtr.dest_qp_num, 200u);
    EXPECT_EQ(server_rtr.ah_attr.dlid, 1);
    EXPECT_EQ(client_rtr.ah_attr.dlid, 2);
    EXPECT_EQ(server_rtr.rq_psn, client_rts.sq_psn);
    EXPECT_EQ(client_rtr.rq_psn, server_rts.sq_psn);

    ASSERT_EQ(client.confirm(id), 0);
    to_server();
    server.expect(Event::Established, server_uid);
    client.expect_none();

    ASSERT_EQ(client.disconnect(id), 0);
    client.expect_none();
    to_server();
    server.expect(Event::Disconnected, server_uid);
    to_client();
    client.expect(Event::Disconnected, client_uid);
    EXPECT_EQ(server.disconnect(fresh), 0) << "it is";
    server.expect_none();
    EXPECT_EQ(destroy(server, listener), 1u);
    EXPECT_EQ(destroy(server, fresh), 2u);
    EXPECT_EQ(destroy(client, id), 4u);
    EXPECT_TRUE(client.carrier.open.empty());
    EXPECT_TRUE(server.carrier.open.empty());
}

TEST_F(CmConnecting, ARequestMayBeRejectedWithData)
{
    listen();
    request();
    fresh = server.expect(Event::ConnectRequest, listener_uid).id;
    EXPECT_EQ(server.reject(fresh, std::string(149, 'x')), -EINVAL);
    EXPECT_EQ(server.reject(fresh, "no"), 0);
    EXPECT_EQ(server.reject(fresh, "no"), -EINVAL);
    to_client();
    const auto event = client.expect(Event::Rejected, client_uid);
    EXPECT_EQ(event.status, 28u);
    EXPECT_EQ(event.param.conn.private_data_len, 148);
    EXPECT_STREQ(reinterpret_cast<const char *>(event.param.conn.private_data), "no");
    EXPECT_EQ(client.confirm(id), -ECONNRESET);
}

TEST_F(CmConnecting, AnAnswerMayBeRejected)
{
    listen();
    request();
    fresh = server.expect(Event::ConnectRequest, listener_uid).id;
    ASSERT_EQ(server.accept(fresh, server_uid, Program::param(200, "")), 0);
    to_client();
    client.expect(Event::ConnectResponse, client_uid);
    EXPECT_EQ(client.reject(id, ""), 0);
    to_server();
    server.expect(Event::Rejected, server_uid);
}

TEST_F(CmConnecting, WhereNobodyListensTheRequestIsRejected)
{
    request();
    to_client();
    EXPECT_EQ(client.expect(Event::Rejected, client_uid).status, 8u);
    id = client.routed(RDMA_PS_TCP, client_uid, address("10.0.0.2", 7000));
    ASSERT_EQ(client.connect(id, Program::param(100, "")), 0);
    client.carrier.open.clear();
    client.manager.lost(client.carrier.last, -ECONNREFUSED);
    EXPECT_EQ(client.expect(Event::Rejected, client_uid).status, 8u);
}

TEST_F(CmConnecting, APeerThatIsNotReachedIsUnreachable)
{
    id = client.routed(RDMA_PS_TCP, client_uid, address("10.0.0.2", 7000));
    ASSERT_EQ(client.connect(id, Program::param(100, "")), 0);
    client.carrier.open.clear();
    client.manager.lost(client.carrier.last, -ETIMEDOUT);
    EXPECT_EQ(static_cast<std::int32_t>(client.expect(Event::Unreachable, client_uid).status),
              -ETIMEDOUT);
}

TEST_F(CmConnecting, WhoListensLooksAtTheAddress)
{
    listen();
    request();
    server.expect(Event::ConnectRequest, listener_uid);
    destroy(server, listener);
    listener = server.create(RDMA_PS_TCP, listener_uid);
    ASSERT_EQ(server.bind(listener, address("10.0.0.2", 7000)), 0);
    ASSERT_EQ(server.listen(listener, 1), 0);
    for (const char *other : {"10.0.0.3", "::1"}) {
        id = client.routed(RDMA_PS_TCP, client_uid, address("10.0.0.2", 7000));
        ASSERT_EQ(client.connect(id, Program::param(100, "")), 0);
        Message message = client.carrier.sent.back().message;
        client.carrier.sent.clear();
        server.carrier.sent.clear();
        std::memcpy(message.destination, address(other, 0).bytes, 16);
        server.carrier.open.insert(2000);
        server.manager.request(2000, port, message);
        EXPECT_EQ(server.carrier.take().reason, 8u);
        EXPECT_FALSE(server.carrier.open.contains(2000));
    }
    server.expect_none();
}

TEST_F(CmConnecting, NoMoreRequestsWaitThanTheBacklogHas)
{
    listen(RDMA_PS_TCP, 2);
    id = client.routed(RDMA_PS_TCP, client_uid, address("10.0.0.2", 7000));
    ASSERT_EQ(client.connect(id, Program::param(100, "")), 0);
    const Message message = client.carrier.take();
    for (Link link = 1; link <= 3; ++link) {
        server.carrier.open.insert(link);
        server.manager.request(link, port, message);
    }
    EXPECT_EQ(server.carrier.take().reason, 3u);
    server.expect(Event::ConnectRequest, listener_uid);
    server.carrier.open.insert(4);
    server.manager.request(4, port, message);
    EXPECT_TRUE(server.carrier.sent.empty()) << "there is room again";
    // The listener goes, and with it those that no one has heard of.
    EXPECT_EQ(destroy(server, listener), 1u);
    EXPECT_EQ(server.carrier.open, std::set<Link>{1});
    EXPECT_EQ(server.carrier.sent.size(), 2u);
    EXPECT_EQ(server.carrier.take().kind, Kind::Rej);
}

TEST_F(CmConnecting, RequestsMoveWithTheirListener)
{
    listen();
    request();
    server.manager.open(60);
    rdma_ucm_migrate_resp answer = {};
    const rdma_ucm_migrate_id wanted = {reinterpret_cast<std::uintptr_t>(&answer), listener,
                                        Program::channel};
    ASSERT_EQ(server.write(60, RDMA_USER_CM_CMD_MIGRATE_ID, wanted, sizeof(answer)), 0);
    rdma_ucm_event_resp event = {};
    const rdma_ucm_get_event get = {reinterpret_cast<std::uintptr_t>(&event)};
    ASSERT_EQ(server.write(60, RDMA_USER_CM_CMD_GET_EVENT, get, sizeof(event)), 0);
    EXPECT_EQ(server.write(60, RDMA_USER_CM_CMD_REJECT,
                           rdma_ucm_reject{.id = event.id,
                                           .private_data_len = 0,
                                           .reason = 0,
                                           .reserved = {},
                                           .private_data = {}}),
              0);
    server.manager.close(60);
}

TEST_F(CmConnecting, ParametersAreChecked)
{
    id = client.routed(RDMA_PS_TCP, client_uid, address("10.0.0.2", 7000));
    EXPECT_EQ(client.connect(id, Program::param(100, std::string(57, 'x'))), -EINVAL);
    EXPECT_EQ(client.connect(id, Program::param(0x1000000, "")), -EINVAL);
    auto invalid = Program::param(100, "");
    invalid.valid = 0;
    EXPECT_EQ(client.connect(id, invalid), -EINVAL);
    client.host.port.lid = 0;
    EXPECT_EQ(client.connect(id, Program::param(100, "")), -ENODEV);
    client.host.port.lid = 1;
    EXPECT_TRUE(client.carrier.sent.empty());
    EXPECT_EQ(client.connect(id, Program::param(100, std::string(56, 'x'))), 0);
    EXPECT_EQ(client.connect(id, Program::param(100, "")), -EINVAL) << "it is under way";
    listen();
    bring(client.carrier.take());
    fresh = server.expect(Event::ConnectRequest, listener_uid).id;
    EXPECT_EQ(server.confirm(fresh), -EINVAL);
    EXPECT_EQ(server.disconnect(fresh), -EINVAL);
    EXPECT_EQ(server.accept(fresh, server_uid, Program::param(200, std::string(197, 'x'))),
              -EINVAL);
    EXPECT_EQ(server.accept(listener, server_uid, Program::param(200, "")), -EINVAL);
    EXPECT_EQ(server.accept(fresh, server_uid, Program::param(200, std::string(196, 'x'))), 0);
}

TEST_F(CmConnecting, APeerThatDiesIsTold)
{
    connect();
    client.carrier.open.clear();
    client.manager.lost(client.carrier.last, -ECONNRESET);
    client.expect(Event::Disconnected, client_uid);
    EXPECT_EQ(client.disconnect(id), 0);
    // With a goodbye under way.
    ASSERT_EQ(server.disconnect(fresh), 0);
    server.carrier.open.clear();
    server.manager.lost(at_server, -ECONNRESET);
    server.expect(Event::Disconnected, server_uid);
    server.expect_none();
}

TEST_F(CmConnecting, ARequestWhosePeerDiesCannotBeAccepted)
{
    listen();
    request();
    server.carrier.open.clear();
    server.manager.lost(at_server, -ECONNRESET);
    fresh = server.expect(Event::ConnectRequest, listener_uid).id;
    EXPECT_EQ(server.accept(fresh, server_uid, Program::param(200, "")), -ECONNRESET);
    server.expect_none();
    EXPECT_EQ(destroy(server, fresh), 0u);
}

TEST_F(CmConnecting, ADyingPeerEndsAnAnswerInEitherState)
{
    listen();
    request();
    fresh = server.expect(Event::ConnectRequest, listener_uid).id;
    server.carrier.is_broken = true;
    EXPECT_EQ(server.accept(fresh, server_uid, Program::param(200, "")), -ECONNRESET);
    server.carrier.is_broken = false;
    destroy(server, listener);
    destroy(client, id);
    client.carrier.sent.clear();
    listen();
    request();
    fresh = server.expect(Event::ConnectRequest, listener_uid).id;
    ASSERT_EQ(server.accept(fresh, server_uid, Program::param(200, "")), 0);
    server.carrier.open.clear();
    server.manager.lost(at_server, -ECONNRESET);
    server.expect(Event::Unreachable, server_uid);
    to_client();
    client.expect(Event::ConnectResponse, client_uid);
    client.carrier.is_broken = true;
    EXPECT_EQ(client.confirm(id), -ECONNRESET);
}

TEST_F(CmConnecting, BothMayDisconnectAtATime)
{
    connect();
    ASSERT_EQ(client.disconnect(id), 0);
    ASSERT_EQ(server.disconnect(fresh), 0);
    const Message goodbye = server.carrier.take();
    to_server();
    server.expect(Event::Disconnected, server_uid);
    client.manager.message(client.carrier.last, goodbye);
    client.expect(Event::Disconnected, client_uid);
    client.expect_none();
    server.expect_none();
}

TEST_F(CmConnecting, AnIdThatGoesDisconnects)
{
    connect();
    destroy(client, id);
    EXPECT_TRUE(client.carrier.open.empty());
    to_server();
    server.expect(Event::Disconnected, server_uid);
}

TEST_F(CmConnecting, ANoticeOfDataEstablishesToo)
{
    listen();
    request();
    fresh = server.expect(Event::ConnectRequest, listener_uid).id;
    EXPECT_EQ(server.command(RDMA_USER_CM_CMD_NOTIFY, rdma_ucm_notify{fresh, 4}), -EINVAL);
    ASSERT_EQ(server.accept(fresh, server_uid, Program::param(200, "")), 0);
    EXPECT_EQ(server.command(RDMA_USER_CM_CMD_NOTIFY, rdma_ucm_notify{fresh, 5}), -EINVAL);
    EXPECT_EQ(server.command(RDMA_USER_CM_CMD_NOTIFY, rdma_ucm_notify{fresh, 4}), 0);
    server.expect(Event::Established, server_uid);
    to_client();
    client.expect(Event::ConnectResponse, client_uid);
    ASSERT_EQ(client.confirm(id), 0);
    to_server();
    server.expect_none();
}

TEST_F(CmConnecting, DatagramsLearnTheirPeersAddress)
{
    listen(RDMA_PS_UDP);
    request(RDMA_PS_UDP, std::string(180, 'x'));
    fresh = server.expect(Event::ConnectRequest, listener_uid).id;
    ASSERT_EQ(server.accept(fresh, server_uid, Program::param(200, "hi")), 0);
    to_client();
    const auto event = client.expect(Event::Established, client_uid);
    EXPECT_EQ(event.param.ud.qp_num, 200u);
    EXPECT_EQ(event.param.ud.qkey, 0x01234567u);
    EXPECT_EQ(event.param.ud.ah_attr.dlid, 2);
    EXPECT_EQ(event.param.ud.ah_attr.port_num, 1);
    EXPECT_EQ(event.param.ud.private_data_len, 136);
    EXPECT_TRUE(client.carrier.open.empty());
    EXPECT_TRUE(server.carrier.open.empty());
    EXPECT_EQ(client.disconnect(id), -EINVAL);
    server.expect_none();
}

// ---- a peer that lies

TEST_F(CmConnecting, MessagesOutOfTurnEndTheConnection)
{
    const Kind kinds[] = {Kind::Req, Kind::Rep, Kind::Rtu, Kind::Rej, Kind::Dreq, Kind::Drep};
    for (const Kind kind : kinds) {
        Message message = message_of(kind);
        message.type = type_rc;
        message.lid = 1;
        if (kind != Kind::Rep && kind != Kind::Rej) {
            id = client.routed(RDMA_PS_TCP, client_uid, address("10.0.0.2", 7000));
            ASSERT_EQ(client.connect(id, Program::param(100, "")), 0);
            client.manager.message(client.carrier.last, message);
            client.expect(Event::Unreachable, client_uid);
            destroy(client, id);
        }
        listen();
        request();
        fresh = server.expect(Event::ConnectRequest, listener_uid).id;
        server.manager.message(at_server, message);
        EXPECT_EQ(server.accept(fresh, server_uid, Program::param(200, "")), -ECONNRESET);
        destroy(server, fresh);
        destroy(server, listener);
        destroy(client, id);
        client.carrier.sent.clear();
        server.carrier.sent.clear();
        EXPECT_TRUE(client.carrier.open.empty());
        EXPECT_TRUE(server.carrier.open.empty());
    }
}

TEST_F(CmConnecting, AFirstMessageThatIsNoRequestIsNotAnswered)
{
    listen();
    Message message = message_of(Kind::Rtu);
    message.type = type_rc;
    bring(message);
    EXPECT_TRUE(server.carrier.sent.empty());
    EXPECT_TRUE(server.carrier.open.empty());
    server.manager.message(77, message);
    server.manager.lost(77, -ECONNRESET);
    server.expect_none();
}

TEST_F(CmConnecting, AnotherTypeOfQueuePairIsRefused)
{
    listen();
    id = client.routed(RDMA_PS_TCP, client_uid, address("10.0.0.2", 7000));
    ASSERT_EQ(client.connect(id, Program::param(100, "")), 0);
    Message message = client.carrier.take();
    message.type = type_ud;
    bring(message);
    EXPECT_EQ(server.carrier.take().reason, 8u);
    server.expect_none();
}

TEST_F(CmConnecting, ReadsUnderWayAreBoundedByTheDevice)
{
    listen();
    id = client.routed(RDMA_PS_TCP, client_uid, address("10.0.0.2", 7000));
    auto param = Program::param(100, "");
    param.responder_resources = param.initiator_depth = 255;
    ASSERT_EQ(client.connect(id, param), 0);
    bring(client.carrier.take());
    const auto event = server.expect(Event::ConnectRequest, listener_uid);
    EXPECT_EQ(event.param.conn.responder_resources, NTBV_MAX_READS);
    EXPECT_EQ(event.param.conn.initiator_depth, NTBV_MAX_READS);
}

} // namespace
