// SPDX-License-Identifier: BSD-3-Clause
// Mode rxonly: receives, counts, frees.
#include <array>

#include <rte_mbuf.h>

#include "modes/modes.hpp"

namespace echo
{

namespace
{

class RxOnly final : public Forwarder
{
public:
    RxOnly(const Way &way, const Settings &settings)
        : Forwarder(way), burst_(static_cast<uint16_t>(settings.burst))
    {
    }

    void poll() override
    {
        const int got = way_.receive(mbufs_.data(), nullptr, burst_);
        if (got <= 0)
            return;
        count_received(mbufs_.data(), static_cast<uint16_t>(got));
        rte_pktmbuf_free_bulk(mbufs_.data(), static_cast<unsigned>(got));
    }

private:
    uint16_t burst_;
    std::array<rte_mbuf *, longest_burst> mbufs_;
};

} // namespace

std::unique_ptr<Forwarder> make_rxonly(const Way &way, const Settings &settings)
{
    return std::make_unique<RxOnly>(way, settings);
}

} // namespace echo
