// SPDX-License-Identifier: BSD-3-Clause
// Mode ping: messages in flight to a peer that sends them back, each round trip timed.
#include <array>
#include <cerrno>
#include <random>
#include <vector>

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "histogram.hpp"
#include "modes/modes.hpp"
#include "traffic/message.hpp"
#include "traffic/outbox.hpp"
#include "traffic/stamp.hpp"
#include "units.hpp"

namespace echo
{

namespace
{

class Ping final : public Forwarder
{
public:
    Ping(const Way &way, const Settings &settings)
        : Forwarder(way), burst_(static_cast<uint16_t>(settings.burst)), count_(settings.count),
          run_(std::random_device()()), content_(test_pattern(settings.size)),
          sent_tsc_(settings.in_flight)
    {
    }

    void poll() override
    {
        receive();
        if (box_.empty())
            fill();
        if (!box_.empty())
            flush();
    }

    /// Messages in flight are lost. Another run: an answer that comes late is not taken for one to
    /// a message of the next connection.
    void link_lost() override
    {
        box_.drop_all();
        lost_ += sent_ - answered_;
        made_ = sent_ = answered_;
        ++run_;
    }

    bool ends() const override { return count_ != 0; }
    bool done() const override { return count_ != 0 && answered_ + lost_ >= count_; }
    std::string report() const override;
    void clear() override
    {
        Forwarder::clear();
        round_trips_ = {};
    }

private:
    void receive();
    bool is_answer(const ntbmsg_meta &meta) const;
    void fill();
    void flush();
    uint64_t &sent_tsc(uint64_t number) { return sent_tsc_[number % sent_tsc_.size()]; }

    uint16_t burst_;
    uint64_t count_; ///< 0: no end
    uint64_t run_;   ///< random at first
    std::vector<std::byte> content_;
    std::vector<uint64_t> sent_tsc_; ///< one place for each in flight
    uint64_t made_ = 0, sent_ = 0, answered_ = 0;
    uint64_t lost_ = 0;
    app::Histogram round_trips_; ///< TSC cycles
    Outbox box_;
    std::array<rte_mbuf *, longest_burst> mbufs_;
    std::array<ntbmsg_meta, longest_burst> meta_;
};

/// What the peer says is checked: only the oldest unanswered message can be answered.
bool Ping::is_answer(const ntbmsg_meta &meta) const
{
    return (meta.flags & echoed_flag) != 0 && answered_ != sent_ &&
           meta.data == (stamp(run_, answered_) & way_.stamp_mask());
}

void Ping::receive()
{
    const int got = way_.receive(mbufs_.data(), meta_.data(), burst_);
    if (got <= 0)
        return;
    const uint64_t now = rte_rdtsc();
    const auto n = static_cast<uint16_t>(got);
    count_received(mbufs_.data(), n);
    for (uint16_t i = 0; i < n; ++i) {
        if (!is_answer(meta_[i])) {
            ++counters_.unexpected;
            continue;
        }
        round_trips_.record(now - sent_tsc(answered_));
        ++answered_;
    }
    rte_pktmbuf_free_bulk(mbufs_.data(), n);
}

void Ping::fill()
{
    const uint64_t in_flight = sent_tsc_.size();
    while (box_.waiting() < burst_ && made_ - answered_ < in_flight &&
           (count_ == 0 || made_ + lost_ < count_)) {
        rte_mbuf *message =
            make_message(ntbmsg_endpoint_pool(way_.endpoint), content_.data(), content_.size());
        if (message == nullptr) {
            ++counters_.tx_nombuf;
            return;
        }
        box_.add(message, {stamp(run_, made_), 0, 0});
        ++made_;
    }
}

void Ping::flush()
{
    const uint64_t now = rte_rdtsc();
    const int sent = box_.flush(way_, counters_);
    for (int i = 0; i < sent; ++i, ++sent_)
        sent_tsc(sent_) = now;
    if (sent >= 0 || sent == -ENOTCONN)
        return;
    // Too long for the peer: nothing of this size will ever go.
    counters_.dropped += box_.drop_all();
    made_ = sent_;
}

std::string Ping::report() const
{
    const auto hz = static_cast<double>(rte_get_tsc_hz());
    std::string line = "  round trip  ";
    if (round_trips_.count() == 0)
        return line + "none\n";
    line += app::quantiles_text(round_trips_, hz) + "  (min " +
            app::with_unit(static_cast<double>(round_trips_.min()) / hz, "s") + ", " +
            std::to_string(round_trips_.count()) + " answers";
    if (lost_ != 0)
        line += ", " + std::to_string(lost_) + " lost with the link";
    return line + ")\n";
}

} // namespace

std::unique_ptr<Forwarder> make_ping(const Way &way, const Settings &settings)
{
    return std::make_unique<Ping>(way, settings);
}

} // namespace echo
