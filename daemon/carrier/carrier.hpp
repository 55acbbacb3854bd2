// SPDX-License-Identifier: BSD-3-Clause
// Carries the connections of clients of two hosts, in one thread, which polls those with traffic
// and sleeps where there is none.
#ifndef NTBD_CARRIER_CARRIER_HPP
#define NTBD_CARRIER_CARRIER_HPP

#include "carrier/relay.hpp"
#include "server/mailbox.hpp"

#include <atomic>
#include <deque>
#include <unordered_map>
#include <vector>

namespace ntbd
{

class Carrier
{
public:
    /// What is shown by telemetry; counted since the start.
    struct Figures {
        uint64_t relays, active;
        uint64_t messages_out, bytes_out, messages_in, bytes_in;
        uint64_t rings;   ///< of clients that slept
        uint64_t sleeps;  ///< of the thread
        uint64_t refused; ///< pipes without a right ticket
    };

    Carrier(Bridge &bridge, Mailbox &mailbox);
    ~Carrier();
    Carrier(const Carrier &) = delete;
    Carrier &operator=(const Carrier &) = delete;

    /// Until stop(), then all connections have ended. @return false: the system refused what it
    /// needs
    bool run();
    /// Any thread.
    void stop();
    Figures figures() const;

    // ---- of the bridge, within poll()

    /// @param data what came with the request for a pipe @return NULL: to be refused
    Relay *admit(const void *data, size_t bytes);
    /// The pipe that admit() has let in.
    void join(Relay *relay, std::unique_ptr<Pipe> pipe, uint32_t peer_ring_bytes);
    void ready(Relay *relay, uint32_t events);
    void say(const LinkNews &news) { mailbox_.put(news); }
    /// Whether the server is behind with its messages.
    bool is_behind() { return mailbox_.size() > news_max; }
    /// The connection to the peer's daemon has ended.
    void lose();

private:
    static constexpr size_t news_max = 4096;

    bool watch(int fd, uint64_t id, uint32_t events);
    void take_orders();
    void take(RelayOrder &&order);
    void pass_on(Relay &relay, const RelayOrder &order);
    void create(RelayOrder &&order);
    void send_messages();
    bool turn();
    bool turn_of(Relay &relay, int64_t now);
    void activate(Relay &relay);
    void look_at_bells(int timeout_ms);
    void remove(Relay &relay);
    void publish();

    Bridge &bridge_;
    Mailbox &mailbox_;
    int poll_ = -1;
    int stop_ = -1;
    std::atomic<bool> stops_{false};
    std::unordered_map<uint64_t, std::unique_ptr<Relay>> relays_;
    std::vector<Relay *> active_;
    std::deque<RelayOrder> unsent_;
    Relay::Traffic traffic_ = {};
    uint64_t sleeps_ = 0;
    uint64_t refused_ = 0;
    std::atomic<uint64_t> shown_[sizeof(Figures) / sizeof(uint64_t)] = {};
};

} // namespace ntbd

#endif
