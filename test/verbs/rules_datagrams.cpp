// SPDX-License-Identifier: BSD-3-Clause
// Rules of UD and UC, which lose what cannot be received, and nothing else.
#include "rules.hpp"

namespace verbs_test
{

namespace
{

// The first one's receive has room for those that are to be lost, but for the one that is too long.
constexpr std::uint32_t grh = NTBV_GRH_BYTES, datagram_sizes[] = {64, 1, 0, NTBV_UD_MTU};

// ---- UD

Work datagram(const Side &side, std::uint32_t qpn, std::uint32_t id, std::uint32_t bytes)
{
    fill(side.memory.data(), bytes, id);
    Work work(NTBV_SEND_IMM, id, side.memory.piece(0, bytes));
    work.wr.remote_lid = static_cast<std::uint16_t>(side.peer.lid);
    work.wr.remote_qpn = qpn;
    work.wr.remote_qkey = attributes().qkey;
    return work.imm(id);
}

ntbv_qp *ready(Side &side)
{
    ntbv_qp *qp = side.make(NTBV_UD);
    check("init", to_init(qp, NTBV_UD));
    check("rtr", to_rtr(qp, NTBV_UD, 0, 0));
    check("rts", to_rts(qp, NTBV_UD));
    return qp;
}

void ask_ud(Side &side)
{
    ntbv_qp *qp = ready(side);
    const std::uint32_t peer = side.swap(ntbv_qp_number(qp));
    const auto send = [&](Work work) {
        check("send", work.post(qp));
        side.expect_sent(work.wr.id);
    };
    send(datagram(side, peer, 100, 8)); // there is no receive
    side.agree();                       // now there are
    Work lost = datagram(side, peer, 101, 8);
    lost.wr.remote_qkey ^= 1;
    send(lost);
    send(datagram(side, peer ^ 0x2000, 102, 8));  // no such queue pair
    send(datagram(side, peer, 103, NTBV_UD_MTU)); // the receive is too short
    std::uint32_t id = 0;
    for (const std::uint32_t bytes : datagram_sizes)
        send(datagram(side, peer, id++, bytes));
}

void serve_ud(Side &side)
{
    ntbv_qp *qp = ready(side);
    const std::uint32_t peer = side.swap(ntbv_qp_number(qp));
    side.hear(); // one is lost
    constexpr std::uint32_t slot_bytes = 8192;
    std::uint32_t id = 0;
    for (const std::uint32_t bytes : datagram_sizes) {
        check("post receive", post_recv(qp, id, side.memory.piece(id * slot_bytes, bytes + grh)));
        ++id;
    }
    side.say();
    id = 0;
    for (const std::uint32_t bytes : datagram_sizes) {
        const ntbv_wc got = side.expect_received(id);
        expect("immediate data", got.imm, id);
        expect("bytes", got.bytes, bytes + grh);
        expect("source queue pair", got.source_qpn, peer);
        expect("source LID", got.source_lid, side.peer.lid);
        expect_filled("byte of a datagram", &side.memory[id * slot_bytes + grh], bytes, id);
        ++id;
    }
    expect_state(qp, NTBV_RTS);
    side.expect_no_event();
}

// ---- UC

constexpr std::uint32_t uc_sizes[] = {0, 64, 5000, 60000}, uc_place = 1 << 20, uc_lost = 2 << 20;

void ask_uc(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_UC);
    std::uint32_t id = 0;
    for (const std::uint32_t bytes : uc_sizes) {
        side.agree(); // there is no receive
        check("send", Work(NTBV_SEND_IMM, 100, side.memory.piece(0, bytes)).imm(100).post(qp));
        side.expect_sent(100);
        // Neither has the peer this key: a write is lost as well.
        fill(side.memory.data(), 64, 1);
        check("write", Work(NTBV_WRITE, 101, side.memory.piece(0, 64))
                           .to(side.theirs.by_wrong_key(), uc_lost)
                           .post(qp));
        side.expect_sent(101);
        side.agree(); // now there is a receive
        fill(side.memory.data(), bytes, id);
        check("write",
              Work(NTBV_WRITE, 1, side.memory.piece(0, bytes)).to(side.theirs, uc_place).post(qp));
        check("send", Work(NTBV_SEND_IMM, 2, side.memory.piece(0, bytes)).imm(id++).post(qp));
        side.expect_sent(1);
        side.expect_sent(2);
    }
}

void serve_uc(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_UC);
    std::uint32_t id = 0;
    for (const std::uint32_t bytes : uc_sizes) {
        side.agree();
        side.hear(); // it is lost
        Side::expect_none("a receive that was not posted", side.received);
        check("post receive", post_recv(qp, id, side.memory.piece(0, bytes)));
        side.say();
        const ntbv_wc got = side.expect_received(id);
        expect("immediate data", got.imm, id);
        expect("bytes", got.bytes, bytes);
        expect_filled("sent byte", side.memory.data(), bytes, id);
        expect_filled("written byte", &side.memory[uc_place], bytes, id);
        expect("a byte that was written by a wrong key", side.memory[uc_lost], 0);
        ++id;
    }
    expect_state(qp, NTBV_RTS);
    side.expect_no_event();
}

constexpr Rule rules[] = {
    {"ud", ask_ud, serve_ud},
    {"uc", ask_uc, serve_uc},
};

} // namespace

std::span<const Rule> rules_of_datagrams()
{
    return rules;
}

} // namespace verbs_test
