// SPDX-License-Identifier: BSD-3-Clause
// Mode io: a bridge between a queue and a queue of an ethdev port, a frame a message, both ways.
#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "modes/modes.hpp"
#include "modes/ports.hpp"
#include "traffic/outbox.hpp"

namespace echo
{

namespace
{

class Io final : public Forwarder
{
public:
    Io(const Way &way, const Settings &settings)
        : Forwarder(way), port_(settings.ports->of(way.number)),
          burst_(static_cast<uint16_t>(settings.burst))
    {
    }
    ~Io() override { rte_pktmbuf_free_bulk(&frames_[begin_], frames()); }

    /// Neither side is asked for more while something of it waits: back-pressure is passed on.
    void poll() override
    {
        if (begin_ == end_)
            receive_messages();
        if (begin_ != end_)
            send_frames();
        if (box_.empty())
            receive_frames();
        if (!box_.empty())
            send_messages();
    }
    void link_lost() override { counters_.dropped += box_.drop_all(); }
    std::string report() const override;
    void clear() override
    {
        Forwarder::clear();
        in_ = out_ = {};
    }

private:
    struct Side {
        uint64_t frames = 0, bytes = 0;
    };

    unsigned frames() const { return static_cast<unsigned>(end_ - begin_); }
    void receive_messages();
    bool is_frame(const rte_mbuf &message) const;
    void send_frames();
    void receive_frames();
    void send_messages();

    const PortQueue port_;
    const uint16_t burst_;
    Outbox box_; ///< to the peer
    std::array<rte_mbuf *, longest_burst> frames_;
    uint16_t begin_ = 0, end_ = 0; ///< of frames_: to the port
    Side in_, out_;                ///< of the port
};

/// The peer decides what a message is like; what would not be a frame on this port stops here.
bool Io::is_frame(const rte_mbuf &message) const
{
    return message.pkt_len >= RTE_ETHER_HDR_LEN && message.pkt_len <= port_.longest_frame &&
           message.nb_segs <= port_.most_segments;
}

void Io::receive_messages()
{
    const int got = way_.receive(frames_.data(), nullptr, burst_);
    if (got <= 0)
        return;
    count_received(frames_.data(), static_cast<uint16_t>(got));
    begin_ = end_ = 0;
    for (uint16_t i = 0; i < static_cast<uint16_t>(got); ++i) {
        if (is_frame(*frames_[i])) {
            frames_[end_++] = frames_[i];
            continue;
        }
        rte_pktmbuf_free(frames_[i]);
        ++counters_.dropped;
    }
}

void Io::send_frames()
{
    std::array<uint32_t, longest_burst> bytes; // taken before: what is sent is not ours any more
    for (uint16_t i = begin_; i < end_; ++i)
        bytes[i] = frames_[i]->pkt_len;
    const uint16_t sent = rte_eth_tx_burst(port_.port, port_.queue, &frames_[begin_],
                                           static_cast<uint16_t>(frames()));
    for (uint16_t i = 0; i < sent; ++i)
        out_.bytes += bytes[begin_ + i];
    out_.frames += sent;
    begin_ = static_cast<uint16_t>(begin_ + sent);
}

void Io::receive_frames()
{
    const uint16_t got = rte_eth_rx_burst(port_.port, port_.queue, box_.mbufs(), burst_);
    for (uint16_t i = 0; i < got; ++i) {
        in_.bytes += box_.mbufs()[i]->pkt_len;
        box_.meta()[i] = {};
    }
    in_.frames += got;
    box_.filled(got);
}

/// A network does not wait: without a peer frames are dropped.
void Io::send_messages()
{
    const int sent = box_.flush(way_, counters_);
    if (sent == -ENOTCONN)
        counters_.dropped += box_.drop_all();
    else if (sent < 0)
        counters_.dropped += box_.free_front(1);
}

std::string Io::report() const
{
    char text[192];
    std::snprintf(text, sizeof(text),
                  "  port %u.%-4u  received %" PRIu64 " frames, %" PRIu64 " bytes; sent %" PRIu64
                  " frames, %" PRIu64 " bytes\n",
                  port_.port, port_.queue, in_.frames, in_.bytes, out_.frames, out_.bytes);
    return text;
}

} // namespace

std::unique_ptr<Forwarder> make_io(const Way &way, const Settings &settings)
{
    return std::make_unique<Io>(way, settings);
}

} // namespace echo
