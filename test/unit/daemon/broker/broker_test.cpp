// SPDX-License-Identifier: BSD-3-Clause
// What needs more than one user, or a client that does not keep to the protocol.
#include "broker/broker.hpp"

#include "wire/sealed.hpp"

#include <cerrno>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

using namespace ntbd;
using ntbc::Message;
using ntbc::Type;

namespace
{
struct Sent {
    ClientId client; ///< 0: the peer's daemon
    Message message;
    int fds;
};

class Record : public Outbox
{
public:
    void to_client(ClientId client, const Message &m, const int *, int count) override
    {
        sent.push_back({client, m, count});
    }
    void to_peer(const Message &m, const int *, int count) override
    {
        sent.push_back({0, m, count});
    }

    void to_carrier(RelayOrder &&) override { ADD_FAILURE(); }

    Sent last() const { return sent.empty() ? Sent{} : sent.back(); }
    size_t count(ClientId client, Type type) const
    {
        size_t found = 0;
        for (const Sent &one : sent)
            found += one.client == client && one.message.type == type;
        return found;
    }
    std::vector<Sent> sent;
};

Message request(Type type, const std::string &name = "", uint32_t flags = ntbc::flag_local)
{
    Message m;
    m.type = type;
    m.request = 5;
    m.flags = flags;
    m.backlog = 8;
    m.timeout_ms = 1000;
    m.key_bytes = static_cast<uint32_t>(name.size());
    name.copy(reinterpret_cast<char *>(m.key), ntbc::key_bytes_max);
    return m;
}

Message about(Type type, uint64_t id, int32_t status = 0)
{
    Message m;
    m.type = type;
    m.request = 6;
    m.id = id;
    m.status = status;
    m.backlog = 32;
    return m;
}

class Brokers : public testing::Test
{
protected:
    static constexpr ClientId root = 1;
    static constexpr ClientId ann = 2;
    static constexpr ClientId bob = 3;
    static constexpr uid_t own = 50;

    void SetUp() override
    {
        config.ring_bytes = 4096;
        ASSERT_TRUE(broker.attach(root, {0, 0, 10}));
        ASSERT_TRUE(broker.attach(ann, {100, 100, 11}));
        ASSERT_TRUE(broker.attach(bob, {200, 200, 12}));
    }
    // The answer to a request.
    Message ask(ClientId client, const Message &m)
    {
        out.sent.clear();
        EXPECT_TRUE(broker.take(client, m));
        for (const Sent &one : out.sent)
            if (one.client == client && one.message.type == Type::answer)
                return one.message;
        ADD_FAILURE() << "no answer";
        return {};
    }
    // Ann's and Bob's ends of a connection.
    void connect(uint64_t *anns, uint64_t *bobs)
    {
        ASSERT_EQ(ask(bob, request(Type::listen, "bob")).status, 0);
        *anns = ask(ann, request(Type::connect, "bob")).id;
        *bobs = out.last().message.id;
        ASSERT_EQ(out.last().message.type, Type::accepted);
        ASSERT_EQ(out.last().fds, 2);
    }

    Config config;
    Record out;
    Broker broker{config, out, own};
};

TEST_F(Brokers, TellEachEndWhoTheOtherIs)
{
    uint64_t anns;
    uint64_t bobs;
    connect(&anns, &bobs);
    ASSERT_EQ(out.sent.size(), 3u);
    EXPECT_EQ(out.sent[0].message.type, Type::answer);
    EXPECT_EQ(out.sent[0].message.request, 5u);
    EXPECT_EQ(out.sent[1].message.type, Type::connected);
    EXPECT_EQ(out.sent[1].client, ann);
    EXPECT_EQ(out.sent[1].message.id, anns);
    EXPECT_EQ(out.sent[1].message.uid, 200u);
    EXPECT_EQ(out.sent[1].message.end, 0u);
    EXPECT_EQ(out.sent[2].client, bob);
    EXPECT_EQ(out.sent[2].message.uid, 100u);
    EXPECT_EQ(out.sent[2].message.end, 1u);
}

TEST_F(Brokers, ShowAndRevokeOnlyWhatIsOnesOwn)
{
    uint64_t anns;
    uint64_t bobs;
    connect(&anns, &bobs);
    const auto listed = [&](ClientId client) {
        ask(client, about(Type::list, 0));
        return out.count(client, Type::entry);
    };
    EXPECT_EQ(listed(ann), 1u);
    EXPECT_EQ(listed(bob), 1u);
    EXPECT_EQ(listed(root), 2u);
    ASSERT_TRUE(broker.attach(9, {own, own, 13}));
    EXPECT_EQ(listed(9), 2u);
    EXPECT_EQ(ask(ann, about(Type::revoke, bobs)).status, -ENOENT);
    EXPECT_EQ(out.sent.size(), 1u);
    EXPECT_EQ(ask(root, about(Type::revoke, bobs)).status, 0);
    EXPECT_EQ(out.count(ann, Type::ended), 1u);
    EXPECT_EQ(out.count(bob, Type::ended), 1u);
}

TEST_F(Brokers, DoNotLetOneCloseWhatIsAnothers)
{
    uint64_t anns;
    uint64_t bobs;
    connect(&anns, &bobs);
    const uint64_t listener = ask(ann, request(Type::listen, "ann")).id;
    EXPECT_EQ(ask(bob, about(Type::unlisten, listener)).status, -ENOENT);
    EXPECT_TRUE(broker.take(bob, about(Type::close, anns)));
    EXPECT_TRUE(broker.take(bob, about(Type::taken, anns)));
    EXPECT_EQ(broker.figures().open, 2u);
    EXPECT_EQ(broker.figures().listeners, 2u);
}

TEST_F(Brokers, KeepNamesOfAUserForThatUser)
{
    EXPECT_EQ(ask(bob, request(Type::listen, "~100/x")).status, -EACCES);
    EXPECT_EQ(ask(root, request(Type::listen, "~100/x")).status, -EACCES);
    EXPECT_EQ(ask(ann, request(Type::listen, "~100/x")).status, 0);
    for (const char *name : {"~", "~100", "~1000/x", "~0100/x", "~ 100/x", "~/x"})
        EXPECT_EQ(ask(ann, request(Type::listen, name)).status, -EACCES) << name;
}

TEST_F(Brokers, ChargeEachEndToItsUser)
{
    config.quotas[100] = {10, 10, 2, 3 * ntbc::memory_bytes(4096)};
    uint64_t anns;
    uint64_t bobs;
    connect(&anns, &bobs);
    const auto used = [&](uid_t uid) {
        const auto found = broker.accounts().used().find(uid);
        return found != broker.accounts().used().end() ? found->second : Quota{0, 0, 0, 0, 0};
    };
    EXPECT_EQ(used(100), (Quota{1, 0, 1, ntbc::memory_bytes(4096), 0}));
    EXPECT_EQ(used(200), (Quota{1, 1, 1, ntbc::memory_bytes(4096), 0}));
    EXPECT_EQ(ask(ann, request(Type::connect, "bob")).status, 0);
    EXPECT_EQ(ask(ann, request(Type::connect, "bob")).status, -EDQUOT); // connections
    config.quotas[100].connections = 10;
    config.quotas[100].bytes--;
    EXPECT_EQ(ask(ann, request(Type::connect, "bob")).status, -EDQUOT); // bytes
    EXPECT_TRUE(broker.take(ann, about(Type::close, anns)));
    EXPECT_EQ(ask(ann, request(Type::connect, "bob")).status, 0);
    broker.detach(ann);
    EXPECT_EQ(used(100), (Quota{0, 0, 0, 0, 0}));
    broker.detach(bob);
    EXPECT_EQ(used(200), (Quota{0, 0, 0, 0, 0}));
    EXPECT_EQ(broker.figures().open, 0u);
}

TEST_F(Brokers, RefuseAConnectThatTheListenersQuotaDoesNotAdmit)
{
    config.quotas[200] = {10, 10, 0, 0};
    ASSERT_EQ(ask(bob, request(Type::listen, "bob")).status, 0);
    ASSERT_EQ(ask(ann, request(Type::connect, "bob")).status, 0);
    EXPECT_EQ(out.last().message.type, Type::failed);
    EXPECT_EQ(out.last().message.status, -EDQUOT);
}

TEST_F(Brokers, RefuseFieldsThatAreOutOfRange)
{
    Message m = request(Type::listen, "x");
    m.backlog = 0;
    EXPECT_EQ(ask(ann, m).status, -EINVAL);
    m.backlog = 1025;
    EXPECT_EQ(ask(ann, m).status, -EINVAL);
    m = request(Type::connect, "x");
    m.timeout_ms = 0;
    EXPECT_EQ(ask(ann, m).status, -EINVAL);
    m.timeout_ms = 3600001;
    EXPECT_EQ(ask(ann, m).status, -EINVAL);
    EXPECT_EQ(ask(ann, request(Type::connect, "")).status, -EINVAL);
    EXPECT_EQ(ask(ann, request(Type::listen, std::string("a\0b", 3))).status, -EINVAL);
    m = request(Type::listen, "x");
    m.key_kind = 1;
    EXPECT_EQ(ask(ann, m).status, -EINVAL);
    EXPECT_EQ(broker.figures().listeners + broker.figures().connecting, 0u);
}

TEST_F(Brokers, DropWhoSendsWhatAClientDoesNot)
{
    for (const Type type :
         {Type::hello, Type::answer, Type::connected, Type::accepted, Type::offer, Type::matched,
          Type::gone, Type::introduce, static_cast<Type>(0), static_cast<Type>(65535)})
        EXPECT_FALSE(broker.take(ann, about(type, 1)));
    EXPECT_FALSE(broker.take(77, request(Type::connect, "x"))); // no client
}

TEST_F(Brokers, LeaveAnAcceptedConnectionWhenItsListenerGoes)
{
    uint64_t anns;
    uint64_t bobs;
    connect(&anns, &bobs);
    broker.take(bob, about(Type::taken, bobs));
    broker.take(bob, about(Type::taken, bobs)); // once more says nothing new
    broker.take(bob, about(Type::unlisten, 1));
    EXPECT_EQ(broker.figures().listeners, 0u);
    EXPECT_EQ(broker.figures().open, 2u);
}
} // namespace
