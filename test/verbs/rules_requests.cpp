// SPDX-License-Identifier: BSD-3-Clause
// Rules of single requests: what they take and when, and what they bring back.
#include "rules.hpp"

namespace verbs_test
{

namespace
{

// ---- inline data are taken by the post

constexpr std::uint32_t inline_bursts = 20, inline_burst = 40, inline_bytes = 200,
                        before_inline = 1 << 20;

void ask_inline_data(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    std::uint8_t data[inline_bytes]; // of no region
    const ntbv_sge piece = {reinterpret_cast<std::uint64_t>(data), inline_bytes, 0};
    for (std::uint32_t n = 0; n < inline_bursts * inline_burst; ++n) {
        const std::uint32_t i = n % inline_burst;
        if (i == 0) {
            side.hear(); // the receives are there
            // So long that what is posted behind it cannot go yet.
            check("long write", Work(NTBV_WRITE, n, side.memory.piece(0, before_inline), 0)
                                    .to(side.theirs, 2 * before_inline)
                                    .post(qp));
        }
        const bool is_last = i == inline_burst - 1;
        fill(data, inline_bytes, 2 * n);
        check("write",
              Work(NTBV_WRITE, n, piece, NTBV_INLINE).to(side.theirs, i * inline_bytes).post(qp));
        fill(data, inline_bytes, 2 * n + 1);
        check("send",
              Work(NTBV_SEND, n, piece, NTBV_INLINE | (is_last ? NTBV_SIGNALED : 0)).post(qp));
        std::memset(data, 0, inline_bytes);
        if (is_last)
            side.expect_sent(n);
    }
}

void serve_inline_data(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    constexpr std::uint32_t slots = 1 << 20;
    for (std::uint32_t n = 0; n < inline_bursts * inline_burst; ++n) {
        const std::uint32_t i = n % inline_burst;
        if (i == 0) {
            for (std::uint32_t slot = 0; slot < inline_burst; ++slot)
                check("post receive",
                      post_recv(qp, n + slot,
                                side.memory.piece(slots + slot * inline_bytes, inline_bytes)));
            side.say();
        }
        expect("bytes", side.expect_received(n).bytes, inline_bytes);
        expect_filled("inline data of a write", &side.memory[i * inline_bytes], inline_bytes,
                      2 * n);
        expect_filled("inline data of a send", &side.memory[slots + i * inline_bytes], inline_bytes,
                      2 * n + 1);
    }
}

// ---- nothing needs no key

void ask_zero_length(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    side.agree();
    const Remote nowhere = {0x123450000, side.theirs.key ^ 0x5a5a5a5a};
    std::uint64_t id = 0;
    for (const ntbv_opcode opcode : {NTBV_WRITE, NTBV_READ, NTBV_WRITE_IMM, NTBV_SEND}) {
        Work work(opcode, ++id);
        check("without a piece", work.to(nowhere).post(qp));
        side.expect_sent(id);
        work.sge = {0x567890000, 0, side.memory.key ^ 0x5a5a5a5a};
        work.wr.n_sge = 1;
        work.wr.id = ++id;
        check("an empty piece", work.post(qp));
        side.expect_sent(id);
    }
}

void serve_zero_length(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    for (std::uint64_t id = 0; id < 4; ++id)
        check("post receive", post_recv(qp, id));
    side.agree();
    for (std::uint64_t id = 0; id < 4; ++id) {
        const ntbv_wc got = side.expect_received(id);
        expect("opcode", got.opcode, id < 2 ? NTBV_WC_RECV_WRITE_IMM : NTBV_WC_RECV);
        expect("bytes", got.bytes, 0);
    }
    expect_state(qp, NTBV_RTS);
}

// ---- atomics

constexpr std::uint64_t added = 200, added_each = 3, added_start = 1ull << 40;

std::uint64_t word_at(const Side &side, std::size_t place)
{
    std::uint64_t value;
    std::memcpy(&value, &side.memory[place], sizeof(value));
    return value;
}

void ask_atomics(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    side.agree();
    const auto post = [&](ntbv_opcode opcode, std::uint64_t id, std::uint64_t add,
                          std::uint64_t swap) {
        Work work(opcode, id, side.memory.piece(id * 8, 8));
        work.wr.compare_add = add;
        work.wr.swap = swap;
        check("atomic", work.to(side.theirs).post(qp));
    };
    // Many under way at a time.
    for (std::uint64_t begin = 0; begin < added; begin += Side::depth / 2) {
        const std::uint64_t end = std::min<std::uint64_t>(begin + Side::depth / 2, added);
        for (std::uint64_t id = begin; id < end; ++id)
            post(NTBV_FETCH_ADD, id, added_each, 0);
        for (std::uint64_t id = begin; id < end; ++id) {
            side.expect_sent(id);
            expect("old value", word_at(side, id * 8), added_start + id * added_each);
        }
    }
    constexpr std::uint64_t sum = added_start + added * added_each;
    post(NTBV_CMP_SWP, 0, sum, 77);
    post(NTBV_CMP_SWP, 1, sum, 88);
    side.expect_sent(0);
    side.expect_sent(1);
    expect("old value of a swap", word_at(side, 0), sum);
    expect("old value of a swap that is none", word_at(side, 8), 77);
    side.agree();
}

void serve_atomics(Side &side)
{
    side.connected(NTBV_RC);
    std::memcpy(side.memory.data(), &added_start, sizeof(added_start));
    side.agree();
    side.agree();
    expect("new value", word_at(side, 0), 77);
    expect("the word behind it", word_at(side, 8), 0);
}

// ---- reads that are longer than messages

constexpr std::uint32_t long_bytes = (5 << 20) + 12345, part_bytes = 700001, parts = 6;

void ask_long_read(Side &side)
{
    ntbv_qp *qp = side.connected(NTBV_RC);
    side.agree();
    side.await_grant(qp, side.theirs, Side::unused);
    const std::uint8_t *got = side.memory.data();
    check("read", Work(NTBV_READ, 0, side.memory.piece(0, long_bytes)).to(side.theirs).post(qp));
    expect("bytes", side.expect_sent(0).bytes, long_bytes);
    expect_filled("read byte", got, long_bytes, 1);
    expect("the byte behind it", got[long_bytes], 0);
    // Several at a time, in parts that change their order.
    std::memset(side.memory.data(), 0, long_bytes);
    for (std::uint32_t i = 0; i < parts; ++i)
        check("read", Work(NTBV_READ, i, side.memory.piece(i * part_bytes, part_bytes))
                          .to(side.theirs, (parts - 1 - i) * part_bytes)
                          .post(qp));
    for (std::uint32_t i = 0; i < parts; ++i) {
        side.expect_sent(i);
        for (std::uint32_t at = 0; at < part_bytes; ++at)
            if (got[i * part_bytes + at] != mark_at((parts - 1 - i) * part_bytes + at, 1))
                fail("byte of a part", at);
    }
}

void serve_long_read(Side &side)
{
    side.connected(NTBV_RC);
    fill(side.memory.data(), long_bytes, 1);
    side.agree();
}

constexpr Rule rules[] = {
    {"inline_data", ask_inline_data, serve_inline_data},
    {"zero_length", ask_zero_length, serve_zero_length},
    {"atomics", ask_atomics, serve_atomics},
    {"long_read", ask_long_read, serve_long_read},
};

} // namespace

std::span<const Rule> rules_of_requests()
{
    return rules;
}

} // namespace verbs_test
