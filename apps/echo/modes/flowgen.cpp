// SPDX-License-Identifier: BSD-3-Clause
// Mode flowgen: UDP frames of many flows in turn; what comes back is counted.
#include <array>

#include <rte_mbuf.h>

#include "modes/generator.hpp"
#include "traffic/frame.hpp"

namespace echo
{

namespace
{

class FlowGen final : public Forwarder
{
public:
    FlowGen(const Way &way, const Settings &settings)
        : Forwarder(way), generator_(settings), burst_(static_cast<uint16_t>(settings.burst)),
          flows_(static_cast<uint32_t>(settings.flows))
    {
        write_headers(generator_.content());
    }

    void poll() override
    {
        generator_.round(way_, counters_, [this](rte_mbuf *message, uint64_t) {
            set_flow(rte_pktmbuf_mtod(message, void *), flow_);
            flow_ = flow_ + 1 < flows_ ? flow_ + 1 : 0;
        });
        const int got = way_.receive(mbufs_.data(), nullptr, burst_);
        if (got <= 0)
            return;
        count_received(mbufs_.data(), static_cast<uint16_t>(got));
        rte_pktmbuf_free_bulk(mbufs_.data(), static_cast<unsigned>(got));
    }
    bool ends() const override { return generator_.ends(); }
    bool done() const override { return generator_.done(); }
    std::string report() const override { return "  flows       " + std::to_string(flows_) + "\n"; }

private:
    Generator generator_;
    uint16_t burst_;
    uint32_t flows_;
    uint32_t flow_ = 0; ///< of the next frame
    std::array<rte_mbuf *, longest_burst> mbufs_;
};

} // namespace

std::unique_ptr<Forwarder> make_flowgen(const Way &way, const Settings &settings)
{
    return std::make_unique<FlowGen>(way, settings);
}

} // namespace echo
