// SPDX-License-Identifier: BSD-3-Clause
// A claimed TCP connection through the daemons (doc/socket-protocol.md, section 4): what the client
// stores is said to the other daemon, and what that one says is stored for the client.
#ifndef NTBD_CARRIER_LINE_RELAY_HPP
#define NTBD_CARRIER_LINE_RELAY_HPP

#include "carrier/relay.hpp"
#include "direction/words.hpp"
#include "pair/pair.hpp"
#include "server/mailbox.hpp"

#include <cstdint>
#include <memory>

namespace ntbd
{

class LineRelay : public Relay
{
public:
    /// @param mailbox where the server hears that the other end has seen a FIN
    LineRelay(RelayOrder &&order, Traffic &traffic, Mailbox &mailbox);

    void fin_seen(uint32_t generation) override { in_.fin_reported = generation; }
    void let_go() override { closing_ = true; }
    void rest() override;

    void join(std::unique_ptr<Pipe> pipe, bool is_open, uint32_t peer_ring_bytes) override;
    void end(int status) override;
    bool turn() override;
    bool sleep() override;
    void wake() override;
    bool has_ended() const override;

private:
    using SenderWords = ntb::socket::SenderWords;
    using Lines = ntb::socket::Lines;

    /// What of a peer's sleeps was served.
    struct Served {
        uint32_t rung = 0, woken = 0;
    };
    /// The direction that the client sends: this end is its receiver, in the other's place.
    struct Out {
        uint32_t want = 0;    ///< as sent
        uint32_t granted = 0; ///< generation, as stored for the client
        SenderWords words;    ///< of that generation, as sent
        uint64_t taken = 0;   ///< as stored
        bool seen = false, ask = false, gone = false;
        uint32_t fin_heard = 0; ///< generation
        Served writer;
    };
    /// The one that it receives.
    struct In {
        uint32_t want = 0;         ///< as stored
        uint32_t granted = 0;      ///< generation, as sent
        SenderWords words;         ///< of that generation, as stored
        uint32_t fin_reported = 0; ///< by the client
        uint32_t fin_seen = 0;     ///< of a ring that was granted
        Served reader;
    };

    Lines &lines_out() const { return page().direction[client_]; }
    Lines &lines_in() const { return page().direction[1 - client_]; }
    ntb::socket::Page &page() const;
    ntb::socket::Ring ring_of(unsigned direction, const SenderWords::Place &place) const;

    bool read_client(LineWords *now, SenderWords *line);
    bool read_as_receiver(LineWords *now);
    bool move_out();
    bool move_in();
    bool take(const LineWords &m, size_t bytes);
    bool take_grant(const LineWords &m);
    void take_asks(const LineWords &m);
    bool take_bytes(const LineWords &m, size_t bytes);
    bool take_fin(uint32_t generation);
    void put(const SenderWords &to, size_t bytes);
    void fail();
    uint64_t taken_in() const;
    uint64_t taken_out() const;
    bool is_client_lost() const;
    void wake_reader();
    void wake_writer();
    void serve(const uint32_t &sleeps, const uint32_t &dozes, uint32_t &woken, Served &served,
               char event);
    void end_doze(uint32_t &word);

    Mailbox &mailbox_;
    unsigned client_; ///< its end of the memory
    Out out_;
    In in_;
    LineWords sent_; ///< the last message
    bool closing_ = false;
    bool peer_closed_ = false;
    uint32_t sleeps_ = 0;
};

} // namespace ntbd

#endif
