// SPDX-License-Identifier: BSD-3-Clause
// A machine, ways to other managers, and what librdmacm writes.
#ifndef TEST_UNIT_VERBS_CM_FAKES_HPP
#define TEST_UNIT_VERBS_CM_FAKES_HPP

#include "cm/manager.hpp"

#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ntb::verbs::cm::test
{

inline Address address(const char *text, std::uint16_t port)
{
    Address made = {};
    made.port = port;
    if (inet_pton(AF_INET6, text, made.bytes) == 1)
        return made;
    std::memcpy(made.bytes, mapped_prefix, sizeof(mapped_prefix));
    EXPECT_EQ(inet_pton(AF_INET, text, made.bytes + sizeof(mapped_prefix)), 1);
    return made;
}

class FakeHost final : public Host
{
public:
    explicit FakeHost(const char *own, std::uint16_t lid) : own_(address(own, 0))
    {
        port.lid = lid;
    }

    int check_peer(const Address &peer) override
    {
        return peer.bytes[12] == 10 ? 0 : -EHOSTUNREACH;
    }
    bool is_own(const Address &asked) override { return is_same_host(asked, own_); }
    Address source_for(const Address &) override { return own_; }
    DevicePort device_port() override { return port; }
    std::uint64_t node_guid() override { return 0x1122; }
    std::uint32_t device_index() override { return 9; }
    std::uint32_t random() override { return ++random_; }

    DevicePort port;

private:
    Address own_;
    std::uint32_t random_ = 0;
};

/// Notes what it is asked for; the test says what comes.
class FakeCarrier final : public Carrier
{
public:
    struct Sent {
        Link link;
        Message message;
    };

    int claim(Port port) override
    {
        return claimed.insert({port.space, port.number}).second ? 0 : -EADDRINUSE;
    }
    void release(Port port) override { claimed.erase({port.space, port.number}); }
    Link connect(Port port, bool here_first, const Message &request) override
    {
        to = port;
        here = here_first;
        sent.push_back({++last, request});
        open.insert(last);
        return last;
    }
    Link locate(Port port, bool here_first, std::uint32_t timeout_ms) override
    {
        to = port;
        here = here_first;
        patience_ms = timeout_ms;
        open.insert(++last);
        return last;
    }
    bool send(Link link, const Message &message) override
    {
        EXPECT_TRUE(open.contains(link)) << "a way that is closed";
        if (is_broken) {
            open.erase(link);
            return false;
        }
        sent.push_back({link, message});
        return true;
    }
    void close(Link link) override { EXPECT_EQ(open.erase(link), 1u) << "closed twice"; }

    /// The answer to the last question, or none.
    void answer(Manager &manager, std::uint16_t lid)
    {
        EXPECT_EQ(open.erase(last), 1u);
        if (lid != 0)
            manager.located(last, lid);
        else
            manager.lost(last, -EHOSTUNREACH);
    }

    Message take()
    {
        EXPECT_FALSE(sent.empty());
        const Message first = sent.empty() ? Message{} : sent.front().message;
        if (!sent.empty())
            sent.erase(sent.begin());
        EXPECT_TRUE(is_sound(first));
        return first;
    }

    std::set<std::pair<std::uint16_t, std::uint16_t>> claimed;
    std::set<Link> open;
    std::vector<Sent> sent;
    Port to = {};
    bool here = false;
    std::uint32_t patience_ms = 0;
    bool is_broken = false;
    Link last = 0;
};

/// A program's calls, as librdmacm makes them.
class Program
{
public:
    Program(const char *own, std::uint16_t lid) : host(own, lid), manager(carrier, host)
    {
        manager.open(channel);
    }

    template <typename T>
    ssize_t write(int to, std::uint32_t number, const T &payload, std::size_t room = 0)
    {
        struct {
            rdma_ucm_cmd_hdr header;
            T payload;
        } command = {{number, sizeof(T), static_cast<std::uint16_t>(room)}, payload};
        const ssize_t done = manager.write(to, &command, sizeof(command));
        return done == static_cast<ssize_t>(sizeof(command)) ? 0 : done;
    }
    template <typename T>
    ssize_t command(std::uint32_t number, const T &payload)
    {
        return write(channel, number, payload);
    }
    template <typename T, typename Answer>
    ssize_t ask(std::uint32_t number, T payload, Answer &answer)
    {
        payload.response = reinterpret_cast<std::uintptr_t>(&answer);
        return write(channel, number, payload, sizeof(answer));
    }

    std::uint32_t create(std::uint16_t space, std::uint64_t uid)
    {
        rdma_ucm_create_id wanted = {};
        wanted.uid = uid;
        wanted.ps = space;
        wanted.qp_type = type_rc;
        rdma_ucm_create_id_resp made = {};
        EXPECT_EQ(ask(RDMA_USER_CM_CMD_CREATE_ID, wanted, made), 0);
        return made.id;
    }
    ssize_t destroy(std::uint32_t id, std::uint32_t &reported)
    {
        rdma_ucm_destroy_id wanted = {};
        wanted.id = id;
        rdma_ucm_destroy_id_resp answer = {};
        const ssize_t done = ask(RDMA_USER_CM_CMD_DESTROY_ID, wanted, answer);
        reported = answer.events_reported;
        return done;
    }
    ssize_t bind(std::uint32_t id, const Address &to)
    {
        rdma_ucm_bind_ip wanted = {};
        wanted.addr = to_sockaddr(to);
        wanted.id = id;
        return command(RDMA_USER_CM_CMD_BIND_IP, wanted);
    }
    ssize_t listen(std::uint32_t id, std::uint32_t backlog)
    {
        return command(RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{id, backlog});
    }
    ssize_t resolve(std::uint32_t id, const Address &to, const Address *from = nullptr)
    {
        rdma_ucm_resolve_ip wanted = {};
        if (from)
            wanted.src_addr = to_sockaddr(*from);
        wanted.dst_addr = to_sockaddr(to);
        wanted.id = id;
        return command(RDMA_USER_CM_CMD_RESOLVE_IP, wanted);
    }
    ssize_t route(std::uint32_t id)
    {
        return command(RDMA_USER_CM_CMD_RESOLVE_ROUTE, rdma_ucm_resolve_route{id, 1000});
    }
    rdma_ucm_query_route_resp query(std::uint32_t id)
    {
        rdma_ucm_query wanted = {};
        wanted.id = id;
        rdma_ucm_query_route_resp answer = {};
        EXPECT_EQ(ask(RDMA_USER_CM_CMD_QUERY_ROUTE, wanted, answer), 0);
        return answer;
    }
    static rdma_ucm_conn_param param(std::uint32_t qpn, const std::string &data)
    {
        rdma_ucm_conn_param made = {};
        made.qp_num = qpn;
        made.responder_resources = 3;
        made.initiator_depth = 4;
        made.retry_count = 5;
        made.rnr_retry_count = 6;
        made.valid = 1;
        made.private_data_len = static_cast<std::uint8_t>(data.size());
        std::memcpy(made.private_data, data.data(), data.size());
        return made;
    }
    ssize_t connect(std::uint32_t id, const rdma_ucm_conn_param &param)
    {
        rdma_ucm_connect wanted = {};
        wanted.conn_param = param;
        wanted.id = id;
        return command(RDMA_USER_CM_CMD_CONNECT, wanted);
    }
    ssize_t accept(std::uint32_t id, std::uint64_t uid, const rdma_ucm_conn_param &param)
    {
        rdma_ucm_accept wanted = {};
        wanted.uid = uid;
        wanted.conn_param = param;
        wanted.id = id;
        return command(RDMA_USER_CM_CMD_ACCEPT, wanted);
    }
    ssize_t confirm(std::uint32_t id) { return accept(id, 0, {}); }
    ssize_t reject(std::uint32_t id, const std::string &data)
    {
        rdma_ucm_reject wanted = {};
        wanted.id = id;
        wanted.private_data_len = static_cast<std::uint8_t>(data.size());
        std::memcpy(wanted.private_data, data.data(), data.size());
        return command(RDMA_USER_CM_CMD_REJECT, wanted);
    }
    ssize_t disconnect(std::uint32_t id)
    {
        return command(RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{id});
    }
    ssize_t attributes(std::uint32_t id, std::uint32_t state, ib_uverbs_qp_attr &attr)
    {
        rdma_ucm_init_qp_attr wanted = {};
        wanted.id = id;
        wanted.qp_state = state;
        return ask(RDMA_USER_CM_CMD_INIT_QP_ATTR, wanted, attr);
    }
    ssize_t get(rdma_ucm_event_resp &event)
    {
        return ask(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, event);
    }
    rdma_ucm_event_resp expect(Event kind, std::uint64_t uid)
    {
        rdma_ucm_event_resp event = {};
        EXPECT_EQ(get(event), 0);
        EXPECT_EQ(event.event, static_cast<std::uint32_t>(kind));
        EXPECT_EQ(event.uid, uid);
        return event;
    }
    void expect_none()
    {
        rdma_ucm_event_resp event = {};
        EXPECT_EQ(get(event), -EAGAIN) << "event " << event.event;
    }
    /// Up to where it can connect.
    std::uint32_t routed(std::uint16_t space, std::uint64_t uid, const Address &to)
    {
        const std::uint32_t id = create(space, uid);
        EXPECT_EQ(resolve(id, to), 0);
        expect(Event::AddrResolved, uid);
        EXPECT_EQ(route(id), 0);
        if (space == RDMA_PS_UDP)
            carrier.answer(manager, 2);
        expect(Event::RouteResolved, uid);
        return id;
    }

    static constexpr int channel = 50;
    FakeHost host;
    FakeCarrier carrier;
    Manager manager;
};

} // namespace ntb::verbs::cm::test

#endif
