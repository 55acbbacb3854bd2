// SPDX-License-Identifier: BSD-3-Clause
// Rules of order: what completes in turn, what never overtakes, what lies in memory last.
#include "rules.hpp"

namespace verbs_test
{

namespace
{

// ---- unsignaled requests retire with the next signaled one

// Rounds of more than half a queue: the next one finds no room unless all places are free again.
constexpr std::uint64_t retired_rounds = 50, retired_round = 100, retired_each = 3;

void ask_unsignaled(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    side.agree();
    side.await_grant(qp, side.theirs, Side::unused);
    constexpr ntbv_opcode opcodes[retired_each] = {NTBV_WRITE, NTBV_SEND_IMM, NTBV_READ};
    for (std::uint64_t round = 0; round < retired_rounds; ++round) {
        side.hear(); // the receives are there
        for (std::uint64_t i = 0; i < retired_round; ++i) {
            const std::uint64_t id = round * retired_round + i;
            const bool is_signaled = i == retired_round / 4 || i == retired_round - 1;
            const ntbv_opcode opcode = opcodes[id % retired_each];
            Work work(opcode, id, side.memory.piece(i * 64, opcode == NTBV_SEND_IMM ? 0 : 64),
                      is_signaled ? unsigned{NTBV_SIGNALED} : 0u);
            check("post",
                  work.to(side.theirs, i * 64).imm(static_cast<std::uint32_t>(id)).post(qp));
        }
        side.expect_sent(round * retired_round + retired_round / 4);
        side.expect_sent(round * retired_round + retired_round - 1);
        Side::expect_none("an unsignaled request has completed", side.sent);
    }
}

void serve_unsignaled(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    side.agree();
    for (std::uint64_t round = 0; round < retired_rounds; ++round) {
        const std::uint64_t begin = round * retired_round, end = begin + retired_round;
        for (std::uint64_t id = begin; id < end; ++id)
            if (id % retired_each == 1)
                check("post receive", post_recv(qp, id));
        side.say();
        for (std::uint64_t id = begin; id < end; ++id)
            if (id % retired_each == 1)
                expect("order", side.expect_received(id).imm, id);
    }
}

// ---- SEND, WRITE, SEND

constexpr std::uint32_t bursts = 60, burst = 16, place_bytes = 32768, sent_place = 1 << 20;

std::uint32_t written_bytes(std::uint32_t n)
{
    constexpr std::uint32_t sizes[] = {8, 64, 256, 4096, 5000, 20001, place_bytes};
    return sizes[n % std::size(sizes)];
}

void ask_send_write_send(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    side.agree();
    side.await_grant(qp, side.theirs, Side::unused);
    for (std::uint32_t n = 0; n < bursts * burst; ++n) {
        if (n % burst == 0)
            side.hear(); // the receives are there, and all before is checked
        const std::uint32_t place = n % burst * place_bytes, bytes = written_bytes(n);
        fill(&side.memory[place], place_bytes, n);
        // Long, so that a write would have time to overtake it.
        check("send",
              Work(NTBV_SEND_IMM, n, side.memory.piece(place, place_bytes), 0).imm(2 * n).post(qp));
        check("write", Work(NTBV_WRITE, n, side.memory.piece(place, bytes), 0)
                           .to(side.theirs, place)
                           .post(qp));
        check("send", Work(NTBV_SEND_IMM, n).imm(2 * n + 1).post(qp));
        if (n % burst == burst - 1)
            for (std::uint32_t i = n + 1 - burst; i <= n; ++i)
                side.expect_sent(i);
    }
}

void serve_send_write_send(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    side.agree();
    for (std::uint32_t n = 0; n < bursts * burst; ++n) {
        if (n % burst == 0) {
            std::memset(side.memory.data(), 0, burst * place_bytes);
            for (std::uint32_t i = 0; i < burst; ++i) {
                const ntbv_sge slot = side.memory.piece(sent_place + i * place_bytes, place_bytes);
                check("post receive", post_recv(qp, 2 * (n + i), slot));
                check("post receive", post_recv(qp, 2 * (n + i) + 1));
            }
            side.say();
        }
        std::uint8_t *place = &side.memory[n % burst * place_bytes];
        const std::uint32_t bytes = written_bytes(n);
        if (n / burst % 2 == 0) {
            expect("first send", side.expect_received(2 * n).imm, 2 * n);
        } else {
            // Who sees the write finds the completion of what was sent before it.
            await_last(place, bytes, n);
            ntbv_wc wc;
            expect("a write has overtaken a send", side.received.poll(wc));
            expect("first send", wc.imm, 2 * n);
        }
        expect_filled("byte of the first send", &side.memory[sent_place + n % burst * place_bytes],
                      place_bytes, n);
        expect("second send", side.expect_received(2 * n + 1).imm, 2 * n + 1);
        expect_filled("a send has overtaken a write", place, bytes, n);
    }
}

// ---- a write that is polled for

constexpr std::uint32_t polled_rounds = 1500, polled_out = 1 << 20;

std::uint32_t polled_bytes(std::uint32_t round)
{
    constexpr std::uint32_t sizes[] = {1, 7, 8, 12, 64, 65, 250, 1000, 4096, 4097, 20000, 100001};
    return sizes[round % std::size(sizes)];
}

void write_polled(Side &side, ntbv_qp *qp, std::uint32_t round)
{
    const std::uint32_t bytes = polled_bytes(round);
    fill(&side.memory[polled_out], bytes, round);
    check("write",
          Work(NTBV_WRITE, round, side.memory.piece(polled_out, bytes)).to(side.theirs).post(qp));
}

void expect_polled(Side &side, std::uint32_t round)
{
    const std::uint32_t bytes = polled_bytes(round);
    await_last(side.memory.data(), bytes, round);
    expect_filled("a byte is not there before the last one", side.memory.data(), bytes, round);
    std::memset(side.memory.data(), 0, bytes);
}

// Each write answers the one before, so that no call of the engine lies between it and the look.
void write_in_turn(Side &side, bool is_first)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    side.agree();
    side.await_grant(qp, side.theirs, Side::unused);
    side.agree();
    for (std::uint32_t round = 0; round < polled_rounds; ++round) {
        if (!is_first)
            expect_polled(side, round);
        write_polled(side, qp, round);
        if (is_first)
            expect_polled(side, round);
        side.expect_sent(round);
    }
}

void ask_polled_write(Side &side)
{
    write_in_turn(side, true);
}

void serve_polled_write(Side &side)
{
    write_in_turn(side, false);
}

// ---- a read, and a fenced send of what it brought

constexpr std::uint32_t fenced_rounds = 40, fenced_bytes = (1 << 20) + 100, fenced_sent = 64;

void ask_fence(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    side.agree();
    side.await_grant(qp, side.theirs, Side::unused);
    for (std::uint32_t round = 0; round < fenced_rounds; ++round) {
        std::memset(side.memory.data(), 0, fenced_bytes);
        side.hear(); // what is read is there, and the receive
        check("read",
              Work(NTBV_READ, 1, side.memory.piece(0, fenced_bytes), 0).to(side.theirs).post(qp));
        check("send", Work(NTBV_SEND, 2, side.memory.piece(fenced_bytes - fenced_sent, fenced_sent),
                           NTBV_SIGNALED | NTBV_FENCE)
                          .post(qp));
        side.expect_sent(2);
    }
}

void serve_fence(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    side.agree();
    const std::uint32_t slot = 4 << 20;
    for (std::uint32_t round = 0; round < fenced_rounds; ++round) {
        fill(side.memory.data(), fenced_bytes, round);
        check("post receive", post_recv(qp, round, side.memory.piece(slot, fenced_sent)));
        side.say();
        side.expect_received(round);
        if (std::memcmp(&side.memory[slot], &side.memory[fenced_bytes - fenced_sent],
                        fenced_sent) != 0)
            fail("a fenced send has not what the read brought", round);
    }
}

constexpr Rule rules[] = {
    {"unsignaled", ask_unsignaled, serve_unsignaled},
    {"send_write_send", ask_send_write_send, serve_send_write_send},
    {"polled_write", ask_polled_write, serve_polled_write},
    {"fence", ask_fence, serve_fence},
};

} // namespace

std::span<const Rule> rules_of_order()
{
    return rules;
}

} // namespace verbs_test
