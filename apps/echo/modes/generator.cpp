// SPDX-License-Identifier: BSD-3-Clause
#include "modes/generator.hpp"

#include <algorithm>
#include <cerrno>

#include "traffic/message.hpp"

namespace echo
{

Generator::Generator(const Settings &settings)
    : burst_(static_cast<uint16_t>(settings.burst)), count_(settings.count),
      content_(test_pattern(settings.size))
{
}

uint16_t Generator::wanted() const
{
    const uint64_t left = count_ != 0 ? count_ - made_ : burst_;
    return static_cast<uint16_t>(std::min<uint64_t>(left, burst_));
}

/// @return messages that were made; their metadata are zeros
uint16_t Generator::make(const Way &way, Counters &counters)
{
    const uint16_t most = wanted();
    uint16_t n = 0;
    for (; n < most; ++n) {
        rte_mbuf *message =
            make_message(ntbmsg_endpoint_pool(way.endpoint), content_.data(), content_.size());
        if (message == nullptr)
            break;
        box_.mbufs()[n] = message;
        box_.meta()[n] = {};
    }
    counters.tx_nombuf += n < most;
    box_.filled(n);
    made_ += n;
    return n;
}

/// Without a peer everything waits for one. What the peer does not take at all is dropped.
void Generator::flush(const Way &way, Counters &counters)
{
    const int sent = box_.flush(way, counters);
    if (sent < 0 && sent != -ENOTCONN)
        counters.dropped += box_.free_front(1);
}

} // namespace echo
