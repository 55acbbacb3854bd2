// SPDX-License-Identifier: BSD-3-Clause
// Mode txonly: sends messages of one size as fast as the peer takes them.
#include "modes/generator.hpp"

namespace echo
{

namespace
{

class TxOnly final : public Forwarder
{
public:
    TxOnly(const Way &way, const Settings &settings) : Forwarder(way), generator_(settings) {}

    void poll() override
    {
        generator_.round(way_, counters_, [](rte_mbuf *, uint64_t) {});
    }
    bool ends() const override { return generator_.ends(); }
    bool done() const override { return generator_.done(); }

private:
    Generator generator_;
};

} // namespace

std::unique_ptr<Forwarder> make_txonly(const Way &way, const Settings &settings)
{
    return std::make_unique<TxOnly>(way, settings);
}

} // namespace echo
