// SPDX-License-Identifier: BSD-3-Clause
// HOT. One-sided operations on one queue: an end that posts them on the other's memory, an end that
// exposes its own, or both at once.
#ifndef PKTGEN_MEASURE_ONE_SIDED_HPP
#define PKTGEN_MEASURE_ONE_SIDED_HPP

#include <optional>

#include "measure/poster.hpp"
#include "measure/stream.hpp"
#include "measure/work.hpp"
#include "point/sizes.hpp"
#include "transport/note.hpp"
#include "transport/region.hpp"

namespace pktgen
{

/// What a queue works with beside its point. All outlive the work.
struct Setup {
    ntbmsg_endpoint *endpoint;
    ChannelLane lane;
    uint32_t number;      ///< of the queue
    const Region *region; ///< exposed by this end, of all queues; not open: nothing
    Timings *timings;
    Uniques *uniques; ///< or NULL
};

class OneSided final : public Work
{
public:
    /// @param sides  sends: posts; receives: exposes
    OneSided(const Setup &setup, const Point &point, Sides sides);
    ~OneSided() override;

    bool set_up() override;
    void slice(unsigned steps) override;
    bool sent_all() const override;
    uint64_t unanswered() const override { return poster_ ? poster_->open_ends() : 0; }

private:
    void begin(uint64_t now) override;
    void step();
    void go_on_posting();
    void send_token();
    void take_notes();
    void check_round(const Note &note);
    void answer();
    void take_completions();
    void take_report(const ntbmsg_completion &completion);
    std::byte *place(uint32_t slot) const;
    void show_word();

    const Setup setup_;
    const Point point_;
    const Sides sides_;
    const bool writes_, rounds_;
    const uint32_t stride_;
    const uint64_t offset_;

    std::optional<Poster> poster_;
    bool ready_ = false;  ///< both ends know each other's memory
    bool named_ = false;  ///< the peer knows ours
    bool warmed_ = false; ///< the way of writes is known
    bool round_sent_ = false;

    Sizes reported_sizes_, checked_sizes_;
    uint64_t reported_ = 0; ///< words that have come
    uint64_t checked_ = 0;  ///< verified writes that were checked
    uint32_t reported_slot_ = 0, checked_slot_ = 0;
    bool answer_waits_ = false;
};

} // namespace pktgen

#endif
