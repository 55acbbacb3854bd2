// SPDX-License-Identifier: BSD-3-Clause
// HOT. Posts one-sided operations on the memory that the far end exposes to one queue, some in
// flight, and checks what they brought. Its own memory has a place for each of those.
#ifndef PKTGEN_MEASURE_POSTER_HPP
#define PKTGEN_MEASURE_POSTER_HPP

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <ntbmsg.h>

#include "measure/trips.hpp"
#include "measure/work.hpp"
#include "point/sizes.hpp"
#include "traffic/content.hpp"
#include "transport/channels.hpp"
#include "transport/region.hpp"

namespace pktgen
{

/// Values that fetch-and-adds of all queues gave back: none comes twice.
class Uniques
{
public:
    static constexpr uint64_t most = uint64_t{1} << 26;

    Uniques() : seen_(std::make_unique<std::atomic<uint64_t>[]>(most / 64)) {}
    /// Any thread. @return whether it is a new one, below most
    bool take(uint64_t value);

private:
    std::unique_ptr<std::atomic<uint64_t>[]> seen_;
};

class Poster
{
public:
    /// @param point    of one queue, but for what decides where its memory lies
    /// @param uniques  NULL: values are looked at in order only. Outlives it, as do timings
    Poster(const ChannelLane &lane, const Point &point, uint32_t number, Timings &timings,
           Uniques *uniques);
    ~Poster();
    Poster(const Poster &) = delete;
    Poster &operator=(const Poster &) = delete;

    /// @param token  a peer's word @return 0, or a negative errno
    int open(const ntbmsg_region_token &token);
    bool is_open() const { return remote_ != nullptr; }
    void start(uint64_t now) { trips_.start(now); }

    /// Makes what is due and posts what is ready. @return 0, or a negative errno
    int post(bool &sending, Sent &sent, uint64_t &full);
    /// A write of nothing that completes when all before it are done at the far end.
    /// @return 0, or a negative errno; also when it is not the time for it
    int post_flush();
    /// @return 0, or a negative errno that ends the work
    int complete(const ntbmsg_completion &completion, Received &tally);
    /// Whether nothing posted comes behind it.
    bool is_last(const ntbmsg_completion &completion) const;
    /// Takes the time of what has completed.
    void stamp() { trips_.stamp(); }
    void record() { trips_.record(); }

    /// Posted, and not complete.
    uint64_t under_way() const { return trips_.sent() - trips_.back() + (flushing_ ? 1 : 0); }
    /// Made, and not complete.
    uint64_t open_ends() const { return trips_.made() - trips_.back(); }
    bool flushed() const { return flushed_; }

    /// A round of verified writes is done, and the far end has not looked at it.
    bool round_waits(bool sending) const;
    uint64_t round_begin() const { return checked_; }
    uint32_t round_count() const { return static_cast<uint32_t>(trips_.made() - checked_); }
    /// The far end has looked at all before @p number. @return false: it has not
    bool round_checked(uint64_t number);

private:
    uint16_t due(uint64_t now) const;
    void make(uint16_t n, Sent &sent);
    void fill(ntbmsg_work &work, uint32_t slot, uint64_t number, uint32_t size);
    int push(uint64_t now, uint64_t &full);
    void finish(uint64_t value, Received &tally);
    void look_at_read(uint32_t slot, Received &tally) const;
    void look_at_value(uint64_t value, Received &tally);
    std::byte *place(uint32_t slot) const { return own_.get() + uint64_t{stride_} * slot; }
    void advance(uint32_t &slot, uint32_t n) const
    {
        slot += n;
        slot = slot >= in_flight_ ? slot - in_flight_ : slot;
    }

    const ChannelLane lane_;
    const Operation operation_;
    const bool verify_, rounds_, signal_all_, confirm_;
    const uint16_t burst_;
    const uint32_t in_flight_, stride_;
    const uint64_t offset_;
    const uint64_t count_;
    const Content content_;
    Sizes sizes_;
    Uniques *const uniques_;
    Lines own_;
    std::vector<ntbmsg_sge> pieces_;
    std::vector<ntbmsg_work> works_; ///< ring; the slots of what is made, sent, back
    uint32_t made_slot_ = 0, sent_slot_ = 0, back_slot_ = 0;
    ntbmsg_remote *remote_ = nullptr;
    Trips trips_;
    uint64_t checked_ = 0; ///< verified writes that the far end has looked at
    uint64_t next_value_ = 0;
    bool flushing_ = false, flushed_ = false;
};

} // namespace pktgen

#endif
