// SPDX-License-Identifier: BSD-3-Clause
// Both halves of a direction in random traces, over a TCP, a ring and daemons that are as late as
// they can be. The oracle is the stream itself: byte i has a value that only i gives.
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "direction/receiver.hpp"
#include "direction/sender.hpp"

using namespace ntb::socket;

namespace
{

constexpr unsigned traces = 20000;
constexpr unsigned steps = 300;
constexpr std::uint64_t ring_bytes = 32;
constexpr std::uint32_t narrow_bytes = 8;
constexpr std::size_t wire_bytes = 40;

std::uint8_t value(std::uint64_t offset)
{
    return static_cast<std::uint8_t>((offset * 0x9E3779B97F4A7C15u) >> 56);
}

struct Totals {
    std::uint64_t by_kernel = 0, by_ring = 0;
    unsigned wide = 0, reverts = 0, ends = 0, ends_in_ring = 0, resets = 0, asked = 0;
};

class Trace
{
public:
    explicit Trace(unsigned seed, Totals &totals) : random_(seed), totals_(totals) {}

    void run()
    {
        for (unsigned i = 0; i < steps && !::testing::Test::HasFailure(); i++)
            step();
        // Everything arrives, and the program reads on.
        while (!::testing::Test::HasFailure() && progress())
            ;
        if (!::testing::Test::HasFailure())
            judge();
    }

private:
    struct Store {
        SenderWords words;
        std::vector<std::pair<std::uint64_t, std::uint8_t>> data; // place in the ring, value
        std::uint32_t want;
    };
    struct Message {
        enum { Grant, FinSeen } what;
        std::uint32_t generation;
    };

    unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }

    void step()
    {
        switch (pick(24)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
        case 5:
            write(1 + pick(12));
            break;
        case 6:
        case 7:
        case 8:
            tcp_arrives(1 + pick(12));
            break;
        case 9:
        case 10:
        case 11:
            store_arrives();
            break;
        case 12:
        case 13:
            seen_by_sender_ = receiver_.words();
            break;
        case 14:
        case 15:
            message_arrives();
            break;
        case 16:
        case 17:
        case 18:
        case 19:
            read(1 + pick(12));
            break;
        case 20:
            if (pick(3) == 0)
                go_back();
            break;
        default:
            rare();
        }
    }

    void rare()
    {
        switch (pick(150)) {
        case 0: // close
            if (sender_.state() != Sender::State::Broken && !fin_) {
                act(sender_.close());
                fin_ = true;
            }
            break;
        case 1: // a death, or a shutdown that no one saw
            fin_ = true;
            break;
        case 2:
            act(sender_.abort());
            aborted_ = true;
            break;
        case 3:
            lost_ = true;
            break;
        case 4:
            totals_.asked++;
            receiver_.ask();
            break;
        case 5:
            if (lost_)
                sender_knows_loss();
            break;
        case 6:
            if (lost_)
                receiver_knows_loss();
            break;
        default:
            break;
        }
    }

    void act(const Sender::Actions &actions)
    {
        if (actions.store)
            stores_.push_back({sender_.words(), {}, 0});
        if (actions.reset)
            rst_ = true;
    }

    void write(std::uint64_t bytes)
    {
        if (sender_.state() == Sender::State::Ended || sender_.state() == Sender::State::Broken ||
            rst_back_)
            return;
        if (const std::uint32_t want = sender_.want())
            stores_.push_back({sender_.words(), {}, want});
        const Sender::Route route = sender_.route(kernel_taken_, seen_by_sender_);
        if (route.switched)
            stores_.push_back({sender_.words(), {}, 0});
        if (route.way == Sender::Way::Kernel) {
            if (fin_)
                return; // EPIPE
            bytes = std::min<std::uint64_t>(bytes, wire_bytes - wire_.size());
            for (std::uint64_t i = 0; i < bytes; i++)
                wire_.push_back(value(written_ + i));
            kernel_taken_ += bytes;
            sender_.wrote_by_kernel(bytes);
            totals_.by_kernel += bytes;
        } else if (route.way == Sender::Way::Ring) {
            bytes = std::min(bytes, route.most);
            Store store{{}, {}, 0};
            for (std::uint64_t i = 0; i < bytes; i++)
                store.data.emplace_back((route.place.position + i) % route.place.used,
                                        value(written_ + i));
            sender_.wrote_into_ring(bytes);
            store.words = sender_.words();
            stores_.push_back(std::move(store));
            totals_.by_ring += bytes;
        } else {
            if (pick(3) == 0 && sender_.filled()) {
                totals_.wide++;
                act({.store = true});
            }
            return;
        }
        written_ += bytes;
    }

    void go_back()
    {
        const Sender::State before = sender_.state();
        Sender::Actions actions;
        if (sender_.go_back(seen_by_sender_, actions) && before == Sender::State::Ring)
            totals_.reverts++;
        act(actions);
    }

    bool tcp_arrives(unsigned bytes)
    {
        if (rst_ && !fin_arrived_ && pick(2) == 0) { // the sender's kernel throws away what it had
            wire_.clear();
            fin_dropped_ = true;
        }
        bool some = false;
        for (; bytes > 0 && !wire_.empty(); bytes--, some = true) {
            queue_.push_back(wire_.front());
            wire_.pop_front();
        }
        if (wire_.empty() && fin_ && !fin_arrived_ && !fin_dropped_)
            some = fin_arrived_ = true;
        return some;
    }

    bool store_arrives()
    {
        if (stores_.empty())
            return false;
        const Store store = stores_.front();
        stores_.pop_front();
        if (lost_ && (cut_ || receiver_told_ || pick(2) == 0)) {
            cut_ = true;
            return true;
        }
        if (store.want != 0) {
            wanted_ = store.want;
            return true;
        }
        // Nothing may be stored into a ring that is used anew, nor over bytes that were not taken.
        EXPECT_EQ(store.words.generation, receiver_.words().generation);
        for (auto [place, byte] : store.data)
            ring_[place] = byte;
        line_ = store.words;
        return true;
    }

    bool message_arrives()
    {
        if (messages_.empty())
            return false;
        const Message message = messages_.front();
        messages_.pop_front();
        if (lost_)
            return true;
        if (message.what == Message::Grant)
            act(sender_.granted(message.generation, ring_bytes, narrow_bytes));
        else
            act(sender_.fin_seen(message.generation, false));
        return true;
    }

    bool read(std::uint64_t bytes)
    {
        const Receiver::Kernel kernel{queue_.size(), fin_arrived_ && wire_.empty(), rst_};
        if (!receiver_.look_at_head(line_))
            receiver_.look(line_, kernel_given_);
        if (receiver_.may_grant(wanted_, kernel_given_)) {
            line_ = {};
            messages_.push_back({Message::Grant, receiver_.grant(ring_bytes)});
            line_.generation = receiver_.words().generation;
        }
        if (receiver_.report_fin(kernel))
            messages_.push_back({Message::FinSeen, receiver_.words().generation});
        const Receiver::Reading reading = receiver_.next(kernel);
        bytes = std::min(bytes, reading.most);
        switch (reading.source) {
        case Receiver::Source::Kernel:
            return read_kernel(bytes);
        case Receiver::Source::Ring:
            for (std::uint64_t i = 0; i < bytes; i++) {
                const SenderWords::Place place = receiver_.place_of(reading.offset + i);
                deliver(ring_[place.position % place.used]);
            }
            receiver_.took_from_ring(bytes);
            return bytes > 0;
        case Receiver::Source::End:
            return end(true);
        case Receiver::Source::Reset:
            return reset();
        case Receiver::Source::Wait:
            break;
        }
        return false;
    }

    bool read_kernel(std::uint64_t bytes)
    {
        bytes = std::min<std::uint64_t>(bytes, queue_.size());
        for (std::uint64_t i = 0; i < bytes; i++) {
            deliver(queue_.front());
            queue_.pop_front();
        }
        kernel_given_ += bytes;
        receiver_.took_from_kernel(bytes);
        if (bytes > 0)
            return true;
        if (fin_arrived_)
            return end(false);
        return rst_ && reset();
    }

    void deliver(std::uint8_t byte)
    {
        EXPECT_EQ(byte, value(delivered_)) << "offset " << delivered_;
        delivered_++;
    }

    bool end(bool in_ring)
    {
        if (ended_)
            return false;
        ended_ = true;
        totals_.ends++;
        totals_.ends_in_ring += in_ring;
        EXPECT_EQ(delivered_, written_);
        EXPECT_TRUE(fin_ || sender_.state() == Sender::State::Ended);
        return true;
    }

    bool reset()
    {
        if (reset_)
            return false;
        reset_ = rst_back_ = true;
        totals_.resets++;
        EXPECT_TRUE(aborted_ || lost_);
        return true;
    }

    void sender_knows_loss()
    {
        if (sender_told_)
            return;
        sender_told_ = true;
        const bool was_broken = rst_;
        act(sender_.lost());
        // One that died cannot reset.
        if (fin_ && !was_broken)
            rst_ = false;
    }

    void receiver_knows_loss()
    {
        if (receiver_told_)
            return;
        receiver_told_ = true;
        if (!receiver_.look_at_head(line_))
            receiver_.look(line_, kernel_given_);
        receiver_.lost();
    }

    bool progress()
    {
        if (lost_ && !sender_told_)
            return sender_knows_loss(), true;
        if (lost_ && !receiver_told_)
            return receiver_knows_loss(), true;
        seen_by_sender_ = receiver_.words();
        if (!lost_ && seen_by_sender_.ask && sender_.state() == Sender::State::Ring)
            go_back();
        bool some = store_arrives();
        some |= tcp_arrives(100);
        some |= message_arrives();
        some |= read(100);
        return some || !messages_.empty() || !stores_.empty(); // a read may have said something
    }

    void judge()
    {
        if (ended_ || reset_)
            return;
        EXPECT_EQ(delivered_, written_);
        EXPECT_FALSE(fin_ || rst_);
        EXPECT_FALSE(receiver_.words().ask && !lost_ && receiver_.state() == Receiver::State::Seen);
    }

    std::mt19937 random_;
    Totals &totals_;
    Sender sender_;
    Receiver receiver_;

    std::uint64_t written_ = 0, delivered_ = 0;
    std::uint64_t kernel_taken_ = 0, kernel_given_ = 0;
    std::deque<std::uint8_t> wire_, queue_;
    bool fin_ = false, fin_arrived_ = false, fin_dropped_ = false, rst_ = false, rst_back_ = false;

    std::deque<Store> stores_;
    SenderWords line_;
    std::uint8_t ring_[ring_bytes] = {};
    std::uint32_t wanted_ = 0;
    ReceiverWords seen_by_sender_;
    std::deque<Message> messages_;

    bool aborted_ = false, ended_ = false, reset_ = false;
    bool lost_ = false, cut_ = false, sender_told_ = false, receiver_told_ = false;
};

} // namespace

TEST(DirectionTraces, BytesComeOnceInOrderAndEndsAreTrue)
{
    Totals totals;
    for (unsigned seed = 1; seed <= traces && !HasFailure(); seed++) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Trace(seed, totals).run();
    }
    // The traces go everywhere.
    EXPECT_GT(totals.wide, traces / 100);
    EXPECT_GT(totals.by_kernel, traces);
    EXPECT_GT(totals.by_ring, traces);
    EXPECT_GT(totals.reverts, traces / 10);
    EXPECT_GT(totals.ends_in_ring, traces / 100);
    EXPECT_GT(totals.ends, totals.ends_in_ring);
    EXPECT_GT(totals.resets, traces / 100);
    EXPECT_GT(totals.asked, traces / 100);
}
