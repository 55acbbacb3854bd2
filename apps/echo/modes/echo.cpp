// SPDX-License-Identifier: BSD-3-Clause
// Mode echo: what comes on a queue goes back on it, in the mbufs it came in, or built anew in
// receive buffers of the peer.
#include "modes/modes.hpp"
#include "traffic/builder.hpp"
#include "traffic/outbox.hpp"
#include "traffic/stamp.hpp"

namespace echo
{

namespace
{

/// Sends back the mbufs.
struct Forward {
    int flush(Outbox &box, const Way &way, Counters &counters) const
    {
        return box.flush(way, counters);
    }
};

template <typename Sender>
class Echo final : public Forwarder
{
public:
    Echo(const Way &way, const Settings &settings)
        : Forwarder(way), burst_(static_cast<uint16_t>(settings.burst))
    {
    }

    /// Nothing new is taken while something waits to go back: the peer's back-pressure is passed
    /// on.
    void poll() override
    {
        if (box_.empty())
            receive();
        // The peer is gone, or does not take a message as long as the one it sent.
        if (!box_.empty() && sender_.flush(box_, way_, counters_) < 0)
            counters_.dropped += box_.free_front(1);
    }

    /// What came from this peer does not go to the next one.
    void link_lost() override { counters_.dropped += box_.drop_all(); }

private:
    void receive()
    {
        const int got = way_.receive(box_.mbufs(), box_.meta(), burst_);
        if (got <= 0)
            return;
        const auto n = static_cast<uint16_t>(got);
        box_.filled(n);
        for (uint16_t i = 0; i < n; ++i)
            box_.meta()[i].flags |= echoed_flag;
        count_received(box_.mbufs(), n);
    }

    uint16_t burst_;
    Sender sender_;
    Outbox box_;
};

} // namespace

std::unique_ptr<Forwarder> make_echo(const Way &way, const Settings &settings)
{
    if (settings.in_place)
        return std::make_unique<Echo<Builder>>(way, settings);
    return std::make_unique<Echo<Forward>>(way, settings);
}

} // namespace echo
