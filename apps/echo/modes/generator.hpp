// SPDX-License-Identifier: BSD-3-Clause
// The sending half of the modes that make their own messages.
#ifndef ECHO_MODES_GENERATOR_HPP
#define ECHO_MODES_GENERATOR_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "modes/modes.hpp"
#include "traffic/outbox.hpp"

struct rte_mempool;

namespace echo
{

/// Sends copies of a template, a burst a round, until it has sent as many as it was asked for.
class Generator
{
public:
    explicit Generator(const Settings &settings);

    /// The content of the messages. To be written before the first round.
    std::vector<std::byte> &content() { return content_; }

    /// Makes messages where none wait, lets @p each change message i of them (as it was
    /// counted from 0), and sends. What the peer does not take waits, also without a peer.
    template <typename Each>
    void round(const Way &way, Counters &counters, const Each &each)
    {
        if (box_.empty())
            fill(way, counters, each);
        if (!box_.empty())
            flush(way, counters);
    }

    bool ends() const { return count_ != 0; }
    bool done() const { return count_ != 0 && made_ == count_ && box_.empty(); }

private:
    uint16_t wanted() const;
    uint16_t make(const Way &way, Counters &counters);
    void flush(const Way &way, Counters &counters);

    template <typename Each>
    void fill(const Way &way, Counters &counters, const Each &each)
    {
        const uint16_t n = make(way, counters);
        for (uint16_t i = 0; i < n; ++i)
            each(box_.mbufs()[i], made_ - n + i);
    }

    uint16_t burst_;
    uint64_t count_;    ///< 0: no end
    uint64_t made_ = 0; ///< messages
    std::vector<std::byte> content_;
    Outbox box_;
};

} // namespace echo

#endif
