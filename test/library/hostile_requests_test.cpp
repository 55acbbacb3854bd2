// SPDX-License-Identifier: BSD-3-Clause
// Peers that break the rules of one-sided operations: as requesters, and as owners.
#include "hostile_peer.hpp"

#include "wire/one_sided.hpp"

namespace
{

class HostileRequests : public HostilePeer
{
protected:
    void SetUp() override
    {
        HostilePeer::SetUp();
        ASSERT_EQ(ntbmsg_cq_create(300, nullptr, nullptr, &cq_), 0);
        ASSERT_EQ(ntbmsg_region_register(near_, memory_.data(), memory_.size(), 7, &region_), 0);
        ntbmsg_region_token bytes;
        ASSERT_EQ(ntbmsg_region_token_get(region_, &bytes), 0);
        std::memcpy(&token_, bytes.bytes, sizeof(token_));
        ASSERT_NO_FATAL_FAILURE(greet());
        begin();
    }
    void TearDown() override
    {
        give_back({channel_});
        turn();
        EXPECT_EQ(ntbmsg_region_release(region_), 0);
        HostilePeer::TearDown();
        EXPECT_EQ(ntbmsg_cq_destroy(cq_), 0);
    }
    void begin()
    {
        ntbmsg_channel_options options = channel_options();
        options.cq = cq_;
        word_ = open_channel(channel_, &options);
    }
    /// A request of @p bytes bytes in all, the header included.
    void request(uint32_t op, uint32_t number, const Request &q, size_t bytes = sizeof(Request))
    {
        std::vector<uint8_t> payload(std::max(bytes, sizeof(q)), 0x77);
        std::memcpy(payload.data(), &q, sizeof(q));
        say(op, word_, number, payload.data(), bytes);
    }
    Request sound() const { return {token_.key, 0, 0, 0}; }
    void expect_done(uint32_t number, Status status)
    {
        const Heard heard = hear();
        ASSERT_EQ(heard.op, op_done);
        EXPECT_EQ(heard.argument, number);
        Done done{};
        ASSERT_EQ(heard.bytes.size(), sizeof(done));
        std::memcpy(&done, heard.bytes.data(), sizeof(done));
        EXPECT_EQ(done.status, static_cast<uint32_t>(status));
    }
    /// The worker answers by a reset, and counts; then there is a new channel.
    void expect_protest_and_begin()
    {
        const uint64_t before = protests_;
        Heard heard = hear();
        while (heard.came && heard.op != op_reset)
            heard = hear();
        EXPECT_EQ(heard.op, op_reset);
        EXPECT_EQ(heard.argument, static_cast<uint32_t>(NTBMSG_REASON_PROTOCOL));
        EXPECT_EQ(ntbmsg_channel_state_get(channel_), NTBMSG_CHANNEL_RESET);
        protests_ = stats(near_).bad_peer;
        EXPECT_EQ(protests_, before + 1);
        give_back({channel_});
        begin();
    }
    /// Posts an operation that this side, as its owner, will answer as it likes.
    void post_quietly(ntbmsg_op op, uint32_t bytes)
    {
        protocol_token_.key = 0x1234567812345678;
        protocol_token_.bytes = 1 << 20;
        protocol_token_.rights = 7;
        ntbmsg_region_token token;
        std::memcpy(token.bytes, &protocol_token_, sizeof(protocol_token_));
        ASSERT_EQ(ntbmsg_remote_open(channel_, &token, &remote_), 0);
        const ntbmsg_sge sge{own_.data(), bytes, 0};
        ntbmsg_work w{};
        w.id = 99;
        w.remote = remote_;
        w.sges = op == NTBMSG_OP_FETCH_ADD ? nullptr : &sge;
        w.sge_count = op == NTBMSG_OP_FETCH_ADD ? 0 : 1;
        w.op = static_cast<uint8_t>(op);
        w.flags = NTBMSG_WORK_SIGNAL;
        ASSERT_EQ(ntbmsg_channel_post_burst(channel_, &w, 1), 1);
    }
    /// The same, and it goes.
    void post(ntbmsg_op op, uint32_t bytes)
    {
        post_quietly(op, bytes);
        const Heard heard = hear();
        EXPECT_GE(heard.op, uint32_t{op_write});
        EXPECT_EQ(heard.argument, 0U);
    }
    void answer(uint32_t op, uint32_t number, size_t bytes)
    {
        const std::vector<uint8_t> payload(bytes, 0x66);
        say(op, word_, number, payload.data(), bytes);
    }
    void answer_done(uint32_t number, uint32_t status, uint64_t value = 0)
    {
        const Done done{status, 0, value};
        say(op_done, word_, number, &done, sizeof(done));
    }
    void expect_completion(int status)
    {
        turn();
        ntbmsg_completion c{};
        ASSERT_EQ(ntbmsg_cq_poll(cq_, &c, 1), 1);
        EXPECT_EQ(c.id, 99U);
        EXPECT_EQ(c.status, status);
        EXPECT_EQ(ntbmsg_cq_poll(cq_, &c, 1), 0) << "one operation, one completion";
        ntbmsg_remote_close(remote_);
    }

    std::vector<uint8_t> memory_ = std::vector<uint8_t>(4096);
    std::vector<uint8_t> own_ = std::vector<uint8_t>(65536, 0x11);
    ntbmsg_region *region_ = nullptr;
    ntbmsg_cq *cq_ = nullptr;
    ntbmsg_channel *channel_ = nullptr;
    ntbmsg_remote *remote_ = nullptr;
    Token token_{};
    Token protocol_token_{};
    uint32_t word_ = 0;
    uint64_t protests_ = 0;
};

// Semantics: one-sided-3
TEST_F(HostileRequests, ImmediateDataReportNoMoreBytesThanCame)
{
    struct Write {
        uint32_t op;
        uint64_t offset, bytes;
        uint32_t said; ///< bytes of the whole write
        uint32_t told;
    };
    const Write writes[] = {
        {op_write, 0, 100, 0, 0},         {op_write_imm, 100, 10, 110, 110}, // two pieces
        {op_write_imm, 110, 10, 0, 10},                                      // as version 1.0 says
        {op_write, 0, 100, 0, 0},         {op_write_imm, 100, 10, 10, 10},   // two writes
        {op_write, 0, 100, 0, 0},         {op_write_imm, 100, 10, 9, 10},    // less than this piece
        {op_write, 0, 100, 0, 0},         {op_write_imm, 100, 10, ~0U, 110}, // more than came
        {op_write_imm, 110, 10, 120, 10},                                    // a word ends a write
        {op_write, 0, 100, 0, 0},         {op_write_imm, 101, 10, 110, 10},  // with a hole
        {op_write, 0, 100, 0, 0},         {op_write, 4096, 1, 0, 0},         // refused
        {op_write_imm, 100, 10, 110, 10},
    };
    uint32_t number = 0;
    for (const Write &write : writes) {
        Request q = sound();
        q.offset = write.offset;
        q.bytes = write.bytes;
        q.extra = number | uint64_t{write.said} << 32;
        request(write.op, number, q, sizeof(q) + write.bytes);
        expect_done(number, write.offset == 4096 ? Status::outside : Status::done);
        ntbmsg_completion c{};
        ASSERT_EQ(ntbmsg_cq_poll(cq_, &c, 1), write.op == op_write_imm ? 1 : 0) << number;
        EXPECT_EQ(c.bytes, write.told) << number;
        EXPECT_EQ(c.imm, write.op == op_write_imm ? number : 0);
        ++number;
    }
}

// Semantics: one-sided-7
TEST_F(HostileRequests, BadKeysRightsAndRangesAreAnsweredAndNothingElse)
{
    const std::vector<uint8_t> before = memory_;
    const struct {
        uint32_t op;
        Request q;
        size_t data;
        Status status;
    } rows[] = {
        {op_write, {token_.key ^ 1, 0, 8, 0}, 8, Status::no_key},
        {op_write, {token_.key ^ 1ull << 63, 0, 8, 0}, 8, Status::no_key},
        {op_write, {0, 0, 8, 0}, 8, Status::no_key},
        {op_write, {~0ull, 0, 8, 0}, 8, Status::no_key},
        {op_write, {token_.key, 4089, 8, 0}, 8, Status::outside},
        {op_write, {token_.key, ~0ull - 3, 8, 0}, 8, Status::outside},
        {op_write_imm, {token_.key, 4096, 1, 0}, 1, Status::outside},
        {op_notify, {token_.key, 0, ~0ull, 0}, 0, Status::outside},
        {op_confirm, {token_.key, ~0ull, 2, 0}, 0, Status::outside},
        {op_read, {token_.key, 4000, 97, 0}, 0, Status::outside},
        {op_read, {token_.key ^ 2, 0, 8, 0}, 0, Status::no_key},
        {op_fetch_add, {token_.key, 4089, 1, 0}, 0, Status::outside},
        {op_fetch_add, {token_.key, 4, 1, 0}, 0, Status::outside},
        {op_compare_swap, {token_.key, ~7ull, 1, 0}, 0, Status::outside},
        {op_probe, {token_.key, 0, 0, 0}, 0, Status::not_there},
        {op_probe, {1, 0, 0, 0}, 0, Status::no_key},
    };
    uint32_t number = 0;
    for (const auto &row : rows) {
        request(row.op, number, row.q, sizeof(Request) + row.data);
        ASSERT_NO_FATAL_FAILURE(expect_done(number, row.status)) << number;
        ++number;
    }
    EXPECT_EQ(memory_, before);
    ntbmsg_completion none;
    EXPECT_EQ(ntbmsg_cq_poll(cq_, &none, 1), 0);
    EXPECT_EQ(stats(near_).bad_peer, 0U) << "an application's mistake is no broken rule";
    request(op_write, number, {token_.key, 1, 2, 0}, sizeof(Request) + 2);
    ASSERT_NO_FATAL_FAILURE(expect_done(number, Status::done));
    EXPECT_EQ(memory_[1], 0x77);
    EXPECT_EQ(memory_[3], 0);
}

TEST_F(HostileRequests, BrokenRequestsEndTheChannel)
{
    const std::vector<uint8_t> before = memory_;
    Request q = sound();
    q.bytes = 8;
    request(op_write, 1, q, sizeof(q) + 8); // not the next number
    expect_protest_and_begin();
    request(op_write, 0, q, sizeof(q) + 7);
    expect_protest_and_begin();
    request(op_write, 0, q, sizeof(q) + 9);
    expect_protest_and_begin();
    q.bytes = ~0ull;
    request(op_write, 0, q, sizeof(q) + 9);
    expect_protest_and_begin();
    request(op_write, 0, sound(), sizeof(q) - 1);
    expect_protest_and_begin();
    request(op_write, 0, sound(), 0);
    expect_protest_and_begin();
    q.bytes = NTBMSG_MAX_OPERATION + 1;
    request(op_read, 0, q);
    expect_protest_and_begin();
    request(op_fetch_add, 0, sound(), sizeof(q) + 8);
    expect_protest_and_begin();
    say(op_close, word_, 0);
    request(op_write, 0, sound());
    expect_protest_and_begin();
    request(op_done + 1, 0, sound());
    expect_protest_and_begin();
    EXPECT_EQ(memory_, before);
}

TEST_F(HostileRequests, MoreRequestsThanAreKept)
{
    // Words that no one takes keep answers back: the queue has room for 300.
    Request q = sound();
    uint32_t number = 0;
    for (; number < 300; ++number) {
        request(op_write_imm, number, q);
        ASSERT_NO_FATAL_FAILURE(expect_done(number, Status::done));
    }
    for (; number < 300 + requests_max; ++number)
        request(op_write_imm, number, q);
    turn();
    EXPECT_EQ(ntbmsg_channel_state_get(channel_), NTBMSG_CHANNEL_OPEN);
    request(op_write_imm, number, q);
    turn();
    EXPECT_EQ(ntbmsg_channel_state_get(channel_), NTBMSG_CHANNEL_RESET);
    ntbmsg_completion got[300];
    EXPECT_EQ(ntbmsg_cq_poll(cq_, got, 300), 300);
    turn();
    EXPECT_EQ(ntbmsg_cq_poll(cq_, got, 300), 0)
        << "what was not reported before the end is not reported";
}

TEST_F(HostileRequests, UnsolicitedReplies)
{
    answer_done(0, 0);
    expect_protest_and_begin();
    answer(op_read_data, 0, 8);
    expect_protest_and_begin();
    post(NTBMSG_OP_WRITE, 8);
    answer_done(1, 0); // of another request
    expect_protest_and_begin();
    expect_completion(-ECONNRESET);
    post(NTBMSG_OP_WRITE, 8);
    answer_done(0, 0);
    expect_completion(0);
    answer_done(0, 0); // twice
    expect_protest_and_begin();
    answer_done(1, 0);
    expect_protest_and_begin();
}

TEST_F(HostileRequests, NoAnswerBehindBothCloses)
{
    // The channel is closed at both ends, and what is under way keeps it.
    post(NTBMSG_OP_WRITE, 8);
    say(op_close, word_, 0);
    turn();
    ASSERT_EQ(ntbmsg_channel_shutdown(channel_), 0);
    ASSERT_EQ(ntbmsg_channel_state_get(channel_), NTBMSG_CHANNEL_CLOSED);
    say(op_reset, word_, 5);
    expect_completion(-ECONNRESET);
    EXPECT_EQ(ntbmsg_channel_state_get(channel_), NTBMSG_CHANNEL_RESET);
    give_back({channel_});
    begin();
    post(NTBMSG_OP_WRITE, 8);
    say(op_close, word_, 0);
    turn();
    ASSERT_EQ(ntbmsg_channel_shutdown(channel_), 0);
    say(op_close, word_, 0); // twice
    expect_protest_and_begin();
    expect_completion(-ECONNRESET);
}

TEST_F(HostileRequests, APeerThatNeverAnswersKeepsNoSlot)
{
    give_back({channel_});
    EXPECT_EQ(hear().op, op_close);
    say(op_close, word_, 0);
    for (const bool peer_first : {true, false}) {
        ntbmsg_channel_options options = channel_options();
        options.cq = cq_;
        options.timeout_ms = 500;
        word_ = open_channel(channel_, &options);
        post(NTBMSG_OP_WRITE, 8);
        if (peer_first)
            say(op_close, word_, 0);
        turn();
        give_back({channel_});
        if (!peer_first)
            say(op_close, word_, 0);
        expect_completion(-ECANCELED);
        const Heard heard = hear();
        EXPECT_EQ(heard.op, op_reset);
        EXPECT_EQ(heard.argument, static_cast<uint32_t>(NTBMSG_REASON_CLOSED));
    }
    begin();
}

TEST_F(HostileRequests, AFullRingAtTheCloseKeepsWhatWentBeforeIt)
{
    give_back({channel_});
    EXPECT_EQ(hear().op, op_close);
    say(op_close, word_, 0);
    ntbmsg_channel_options options = channel_options();
    options.cq = cq_;
    options.timeout_ms = patience_ms;
    word_ = open_channel(channel_, &options, generous_opening());
    ASSERT_GE(ntbmsg_worker_event_fd(near_worker_), 0);
    const unsigned filled = fill_ring(channel_);
    EXPECT_EQ(ntbmsg_worker_arm(near_worker_), 0)
        << "a full ring alone is nothing to be polled for";
    EXPECT_EQ(ntbmsg_worker_disarm(near_worker_), 0);
    post_quietly(NTBMSG_OP_WRITE, 8);
    EXPECT_EQ(ntbmsg_worker_arm(near_worker_), 1) << "the request is held";
    give_back({channel_});
    EXPECT_EQ(ntbmsg_worker_arm(near_worker_), 1);
    ASSERT_NO_FATAL_FAILURE(hear_data(filled));
    const Heard heard = hear();
    EXPECT_EQ(heard.op, op_write);
    EXPECT_EQ(heard.bytes.size(), sizeof(Request) + 8);
    EXPECT_TRUE(is_silent()) << "the answer is waited for";
    answer_done(0, 0);
    EXPECT_EQ(hear().op, op_close);
    expect_completion(-ECANCELED);
    say(op_close, word_, 0);
    begin();
}

TEST_F(HostileRequests, AnswersOfTheWrongShape)
{
    const auto expect_end = [&] {
        expect_protest_and_begin();
        expect_completion(-ECONNRESET);
    };
    post(NTBMSG_OP_WRITE, 8);
    answer(op_read_data, 0, 8); // to a write
    expect_end();
    post(NTBMSG_OP_WRITE, 8);
    answer_done(0, 5); // a status that there is not
    expect_end();
    post(NTBMSG_OP_WRITE, 8);
    answer(op_done, 0, sizeof(Done) - 1);
    expect_end();
    post(NTBMSG_OP_READ, 100);
    answer(op_read_data, 0, 101); // more than was asked for
    expect_end();
    EXPECT_EQ(own_, std::vector<uint8_t>(65536, 0x11)) << "nothing of it is taken";
    post(NTBMSG_OP_READ, 100);
    answer(op_read_data, 0, 99);
    answer(op_read_data, 0, 2);
    expect_end();
    EXPECT_EQ(own_[98], 0x66);
    EXPECT_EQ(own_[99], 0x11);
    post(NTBMSG_OP_READ, 100);
    answer(op_read_data, 0, 99);
    answer_done(0, 0); // less than was asked for
    expect_end();
    post(NTBMSG_OP_READ, 100);
    answer(op_read_data, 0, 0);
    answer(op_read_data, 0, 100);
    answer_done(0, 0);
    expect_completion(0);
    EXPECT_EQ(own_[99], 0x66);
    EXPECT_EQ(own_[100], 0x11);
}

TEST_F(HostileRequests, EachStatusIsReported)
{
    const int statuses[] = {0, -EKEYREJECTED, -EACCES, -ERANGE, -EIO};
    for (uint32_t i = 0; i < 5; ++i) {
        post(NTBMSG_OP_FETCH_ADD, 0);
        answer_done(0, i, 5);
        expect_completion(statuses[i]);
        ASSERT_EQ(ntbmsg_channel_reset(channel_, 1), 0);
        EXPECT_EQ(hear().op, op_reset);
        give_back({channel_});
        begin();
    }
}

} // namespace
