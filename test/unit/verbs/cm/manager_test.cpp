// SPDX-License-Identifier: BSD-3-Clause
// Channels, ids, their events and numbers.
#include "fakes.hpp"

using namespace ntb::verbs::cm;
using namespace ntb::verbs::cm::test;

namespace
{

const Address peer = address("10.0.0.2", 7000);

TEST(CmManager, WhatIsNoCommandIsRefused)
{
    Program program("10.0.0.1", 1);
    const rdma_ucm_cmd_hdr unknown = {99, 0, 0};
    EXPECT_EQ(program.manager.write(Program::channel, &unknown, sizeof(unknown)), -ENOSYS);
    EXPECT_EQ(program.manager.write(Program::channel, &unknown, 4), -EINVAL);
    EXPECT_EQ(program.manager.write(51, &unknown, sizeof(unknown)), -EBADF);
    EXPECT_EQ(program.command(RDMA_USER_CM_CMD_BIND, rdma_ucm_bind{}), -EINVAL);
    EXPECT_EQ(program.command(RDMA_USER_CM_CMD_JOIN_IP_MCAST, rdma_ucm_join_ip_mcast{}), -ENOSYS);
    EXPECT_EQ(program.bind(0, peer), -ENOENT);
    EXPECT_EQ(program.bind(1, peer), -ENOENT);
    EXPECT_EQ(program.bind(0xffffffff, peer), -ENOENT);
}

TEST(CmManager, IdsAreOfKnownPortSpacesAndOfTheirChannel)
{
    Program program("10.0.0.1", 1);
    rdma_ucm_create_id wanted = {};
    rdma_ucm_create_id_resp made;
    wanted.ps = 0x1234;
    EXPECT_EQ(program.ask(RDMA_USER_CM_CMD_CREATE_ID, wanted, made), -EINVAL);
    wanted.ps = RDMA_PS_IB;
    wanted.qp_type = 10; // XRC
    EXPECT_EQ(program.ask(RDMA_USER_CM_CMD_CREATE_ID, wanted, made), -EINVAL);
    wanted.ps = RDMA_PS_TCP;
    EXPECT_EQ(program.command(RDMA_USER_CM_CMD_CREATE_ID, wanted), -ENOSPC) << "no room to answer";
    const std::uint32_t id = program.create(RDMA_PS_TCP, 1);
    EXPECT_EQ(id, 1u) << "the refused ones have gone";
    program.manager.open(60);
    EXPECT_EQ(program.write(60, RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{id, 1}), -EINVAL);
    EXPECT_EQ(program.listen(id, 1), 0);
}

TEST(CmManager, NumbersOfIdsAreUsedAgain)
{
    Program program("10.0.0.1", 1);
    std::uint32_t reported;
    EXPECT_EQ(program.create(RDMA_PS_TCP, 1), 1u);
    EXPECT_EQ(program.create(RDMA_PS_TCP, 1), 2u);
    EXPECT_EQ(program.destroy(1, reported), 0);
    EXPECT_EQ(program.create(RDMA_PS_UDP, 1), 1u);
    EXPECT_EQ(program.destroy(3, reported), -ENOENT);
}

TEST(CmManager, EventsAreCountedWhereTheyAreAcknowledged)
{
    Program program("10.0.0.1", 1);
    const std::uint32_t id = program.routed(RDMA_PS_TCP, 77, peer);
    program.expect_none();
    std::uint32_t reported;
    EXPECT_EQ(program.destroy(id, reported), 0);
    EXPECT_EQ(reported, 2u);
}

TEST(CmManager, AnIdThatGoesTakesItsEventsWithIt)
{
    Program program("10.0.0.1", 1);
    const std::uint32_t one = program.create(RDMA_PS_TCP, 1),
                        other = program.create(RDMA_PS_TCP, 2);
    EXPECT_EQ(program.resolve(one, peer), 0);
    EXPECT_EQ(program.resolve(other, peer), 0);
    EXPECT_EQ(program.manager.waiting(Program::channel), 2u);
    std::uint32_t reported;
    EXPECT_EQ(program.destroy(one, reported), 0);
    EXPECT_EQ(reported, 0u);
    EXPECT_EQ(program.manager.waiting(Program::channel), 1u);
    program.expect(Event::AddrResolved, 2);
}

TEST(CmManager, ChangedChannelsAreNamedOnce)
{
    Program program("10.0.0.1", 1);
    program.manager.take_changed();
    const std::uint32_t id = program.create(RDMA_PS_TCP, 1);
    EXPECT_TRUE(program.manager.take_changed().empty());
    EXPECT_EQ(program.resolve(id, peer), 0);
    EXPECT_EQ(program.manager.take_changed(), std::vector<int>{Program::channel});
    EXPECT_TRUE(program.manager.take_changed().empty());
}

TEST(CmManager, AnEventWithoutRoomStays)
{
    Program program("10.0.0.1", 1);
    const std::uint32_t id = program.create(RDMA_PS_TCP, 1);
    EXPECT_EQ(program.resolve(id, peer), 0);
    rdma_ucm_event_resp event;
    rdma_ucm_get_event wanted = {reinterpret_cast<std::uintptr_t>(&event)};
    EXPECT_EQ(program.write(Program::channel, RDMA_USER_CM_CMD_GET_EVENT, wanted, 16), -ENOSPC);
    program.expect(Event::AddrResolved, 1);
}

TEST(CmManager, MigrationTakesEventsAlong)
{
    Program program("10.0.0.1", 1);
    program.manager.open(60);
    const std::uint32_t id = program.create(RDMA_PS_TCP, 1);
    EXPECT_EQ(program.resolve(id, peer), 0);
    program.expect(Event::AddrResolved, 1);
    EXPECT_EQ(program.route(id), 0);
    rdma_ucm_migrate_resp answer = {};
    rdma_ucm_migrate_id wanted = {reinterpret_cast<std::uintptr_t>(&answer), id, 99};
    EXPECT_EQ(program.write(60, RDMA_USER_CM_CMD_MIGRATE_ID, wanted, sizeof(answer)), -EINVAL);
    wanted.fd = Program::channel;
    EXPECT_EQ(program.write(60, RDMA_USER_CM_CMD_MIGRATE_ID, wanted, sizeof(answer)), 0);
    EXPECT_EQ(answer.events_reported, 1u);
    program.expect_none();
    EXPECT_EQ(program.manager.waiting(60), 1u);
    EXPECT_EQ(program.route(id), -EINVAL) << "it is of the other channel now";
}

TEST(CmManager, OptionsAreChecked)
{
    Program program("10.0.0.1", 1);
    const std::uint32_t id = program.create(RDMA_PS_TCP, 1);
    int value = 1;
    rdma_ucm_set_option wanted = {};
    wanted.optval = reinterpret_cast<std::uintptr_t>(&value);
    wanted.id = id;
    wanted.level = RDMA_OPTION_ID;
    wanted.optname = RDMA_OPTION_ID_REUSEADDR;
    wanted.optlen = sizeof(value);
    EXPECT_EQ(program.command(RDMA_USER_CM_CMD_SET_OPTION, wanted), 0);
    wanted.optname = RDMA_OPTION_ID_AFONLY;
    EXPECT_EQ(program.command(RDMA_USER_CM_CMD_SET_OPTION, wanted), 0);
    wanted.optlen = 1u << 31;
    EXPECT_EQ(program.command(RDMA_USER_CM_CMD_SET_OPTION, wanted), -EINVAL);
    wanted.optname = RDMA_OPTION_ID_TOS;
    wanted.optlen = 1;
    EXPECT_EQ(program.command(RDMA_USER_CM_CMD_SET_OPTION, wanted), 0);
    wanted.optname = 99;
    EXPECT_EQ(program.command(RDMA_USER_CM_CMD_SET_OPTION, wanted), -ENOSYS);
    wanted.level = RDMA_OPTION_IB;
    wanted.optname = RDMA_OPTION_IB_PATH;
    EXPECT_EQ(program.command(RDMA_USER_CM_CMD_SET_OPTION, wanted), -ENOSYS);
}

TEST(CmManager, AClosedChannelEndsItsIdsAndPorts)
{
    Program program("10.0.0.1", 1);
    const std::uint32_t id = program.create(RDMA_PS_TCP, 1);
    EXPECT_EQ(program.bind(id, address("0.0.0.0", 7000)), 0);
    EXPECT_EQ(program.carrier.claimed.size(), 1u);
    program.manager.close(Program::channel);
    EXPECT_TRUE(program.carrier.claimed.empty());
    EXPECT_FALSE(program.manager.is_open(Program::channel));
}

} // namespace
