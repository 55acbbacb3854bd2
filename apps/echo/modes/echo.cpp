// SPDX-License-Identifier: BSD-3-Clause
// Mode echo: what comes on a queue goes back on it, in the mbufs it came in.
#include "modes/modes.hpp"
#include "traffic/outbox.hpp"
#include "traffic/stamp.hpp"

namespace echo
{

namespace
{

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
        if (!box_.empty() && box_.flush(way_, counters_) < 0)
            counters_.dropped += box_.drop_front();
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
    Outbox box_;
};

} // namespace

std::unique_ptr<Forwarder> make_echo(const Way &way, const Settings &settings)
{
    return std::make_unique<Echo>(way, settings);
}

} // namespace echo
