// SPDX-License-Identifier: BSD-3-Clause
// Streams through two daemons, in the middle of which something happens.
#include "tcp.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>

using namespace ntb::socket;
using namespace ntb::socket::test;
using ntbd::test::Daemon;
using ntbd::test::Folder;

namespace
{

// Streams through two daemons, in the middle of which something happens. Who reads gets a prefix of
// what was accepted, its end only where that was all, and nobody waits for ever.
class Carried : public testing::Test
{
protected:
    static constexpr std::size_t total = 3000000;

    Carried()
    {
        plug(cable, near, far);
        for (Daemon *one : {&near, &far}) {
            one->config.ring_bytes = 16384;
            one->start();
        }
        join(near, far);
    }
    struct Outcome {
        ssize_t sent = 0;     ///< accepted
        ssize_t received = 0; ///< and right
        ssize_t sender_said = 0, receiver_said = 0;
        bool by_ring = false;
    };
    void send_all(const Side &one, Outcome &outcome)
    {
        const auto until = std::chrono::steady_clock::now() + ntbd::test::patience;
        for (std::size_t n = 1; outcome.sent < static_cast<ssize_t>(total); n = n * 7 % 6007 + 1) {
            const ssize_t some = one.send(stream.substr(static_cast<std::size_t>(outcome.sent), n));
            if (some == -EAGAIN && std::chrono::steady_clock::now() < until) {
                std::this_thread::yield();
                continue;
            }
            if (some < 0) {
                outcome.sender_said = some;
                return;
            }
            outcome.sent += some;
        }
        one.connection->shutdown(one.fd, SHUT_WR);
    }
    void receive_all(const Side &one, Outcome &outcome)
    {
        std::vector<char> bytes(5000);
        const auto until = std::chrono::steady_clock::now() + ntbd::test::patience;
        for (;;) {
            const ssize_t some = one.receive(bytes.data(), bytes.size());
            outcome.by_ring = outcome.by_ring || one.connection->has_ring();
            if (some == -EAGAIN && std::chrono::steady_clock::now() < until) {
                std::this_thread::yield();
                continue;
            }
            if (some <= 0) {
                outcome.receiver_said = some;
                return;
            }
            ASSERT_EQ(stream.compare(static_cast<std::size_t>(outcome.received),
                                     static_cast<std::size_t>(some), bytes.data(),
                                     static_cast<std::size_t>(some)),
                      0);
            outcome.received += some;
        }
    }
    /// @param happens  once so many bytes were received
    Outcome run(std::size_t at, const std::function<void(Side *)> &happens)
    {
        std::unique_ptr<Tcp> tcp;
        Side side[2];
        const auto close = [&] {
            for (Side &one : side)
                if (one.connection != nullptr)
                    std::exchange(one.connection, nullptr)->close(one.fd, true);
        };
        // What the devices say of the last loss may come after the daemons have met again: then
        // these have no rings, and others are tried.
        EXPECT_TRUE(await([&] {
            if (!near.now().peer || !far.now().peer)
                introduce(near, far);
            close();
            tcp = std::make_unique<Tcp>();
            Attachment *ends[] = {attach(near.config.socket), attach(far.config.socket)};
            for (int i = 0; i < 2; i++)
                side[i] = {Connection::claim(*ends[i], tcp->fd[i], i == 1), tcp->fd[i]};
            for (int i = 0; i < 3000 && ends[0]->figures().ring_sent == 0; i++) {
                side[i % 2].put("x");
                EXPECT_EQ(side[1 - i % 2].get(1), "x");
                ends[0]->settle();
            }
            return ends[0]->figures().ring_sent > 0;
        }));
        Outcome outcome;
        std::thread sender([&] { send_all(side[0], outcome); });
        std::thread receiver([&] { receive_all(side[1], outcome); });
        EXPECT_TRUE(await([&] {
            return std::atomic_ref(outcome.received).load() >= static_cast<ssize_t>(at) ||
                   std::atomic_ref(outcome.receiver_said).load() != 0;
        }));
        happens(side);
        sender.join();
        receiver.join();
        EXPECT_TRUE(outcome.by_ring);
        EXPECT_NE(outcome.receiver_said, -EAGAIN) << "it waits for ever";
        EXPECT_NE(outcome.sender_said, -EAGAIN) << "it waits for ever";
        EXPECT_LE(outcome.received, outcome.sent);
        if (outcome.receiver_said == 0) {
            EXPECT_EQ(outcome.received, outcome.sent);
        }
        close();
        return outcome;
    }

    const std::string stream = pattern(total, 9);
    Folder folder;
    ntbd::test::Cable cable;
    Daemon near{folder.path + "/near.sock"};
    Daemon far{folder.path + "/far.sock"};
};

TEST_F(Carried, EndsOfTheirWayAtAnyTime)
{
    std::mt19937 random(3);
    for (int round = 0; round < 24; round++) {
        SCOPED_TRACE(round);
        const std::size_t at = random() % (total / 2);
        Daemon &daemon = round % 2 == 0 ? near : far;
        const bool is_cut = round % 3 == 0;
        run(at, [&](Side *) {
            if (is_cut)
                near.bridge->cut();
            else
                daemon.stop();
        });
        if (!is_cut)
            daemon.start();
    }
}

TEST_F(Carried, GoBackToTcpAtAnyTime)
{
    std::mt19937 random(4);
    for (int round = 0; round < 24; round++) {
        SCOPED_TRACE(round);
        const Outcome outcome = run(random() % (total / 2), [&](Side *side) {
            Side &one = side[round % 2], &other = side[1 - round % 2];
            EXPECT_TRUE(await([&] {
                other.connection->look(other.fd); // it answers what it is asked
                return one.connection->leave(one.fd);
            }));
        });
        EXPECT_EQ(outcome.receiver_said, 0);
        EXPECT_EQ(outcome.received, static_cast<ssize_t>(total));
    }
}

} // namespace
