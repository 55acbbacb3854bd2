// SPDX-License-Identifier: BSD-3-Clause
#include "measure/in_place.hpp"

#include <algorithm>

#include "traffic/payload.hpp"
#include "transport/transport.hpp"

namespace pktgen
{

template <typename Transport>
InPlace<Transport>::InPlace(Transport transport, const Point &point, Sizes sizes)
    : Work(point), transport_(transport), sizes_(std::move(sizes)), content_(point.pattern),
      plain_(point.pattern == Pattern::counter), burst_(static_cast<uint16_t>(point.burst)),
      count_(point.count != 0 ? point.count : UINT64_MAX)
{
}

template <typename Transport>
void InPlace<Transport>::slice(unsigned steps)
{
    for (unsigned step = 0; step < steps && sending_ && error() == 0; ++step)
        push();
}

/// A burst's lengths, or those of all that is left.
template <typename Transport>
void InPlace<Transport>::look_ahead()
{
    const uint64_t most = std::min<uint64_t>(burst_, count_ - sent_.messages);
    for (; ahead_ < most; ++ahead_) {
        lengths_[ahead_] = sizes_.size();
        sizes_.advance();
    }
}

template <typename Transport>
void InPlace<Transport>::count_sent(uint16_t n)
{
    for (uint16_t i = 0; i < n; ++i) {
        sent_.bytes += lengths_[i];
        sent_.sum += expected_sum(lengths_[i], sent_.messages + i);
    }
    sent_.messages += n;
    std::copy(lengths_ + n, lengths_ + ahead_, lengths_);
    ahead_ = static_cast<uint16_t>(ahead_ - n);
}

template <typename Transport>
void InPlace<Transport>::push()
{
    look_ahead();
    const uint64_t first = sent_.messages;
    const app::Built built =
        bursts_.send(transport_, {lengths_, ahead_},
                     [this, first](uint16_t i, std::byte *to, uint32_t bytes, uint32_t offset) {
                         if (plain_)
                             fill_words(to, bytes, first + i);
                         else
                             content_.fill(to, bytes, offset, first + i);
                     });
    tx_full_ += built.sent < ahead_ ? 1 : 0;
    if (built.sent < 0)
        return fail(built.sent);
    count_sent(static_cast<uint16_t>(built.sent));
    sending_ = sent_.messages < count_;
}

template class InPlace<QueueTransport>;
template class InPlace<ChannelTransport>;

} // namespace pktgen
