// SPDX-License-Identifier: BSD-3-Clause
#include "queue/receives.hpp"

#include <bit>
#include <cstring>

namespace ntb::verbs
{

bool Receives::create(std::uint32_t n, std::uint32_t max_sge)
{
    const std::uint32_t places = std::bit_ceil(n);
    stride_ = offsetof(Receive, sge) + max_sge * sizeof(ntbv_sge);
    // Behind the last place a whole Receive fits, as the places are handled as such.
    if (!bytes_.create(places * stride_ + sizeof(Receive)))
        return false;
    memory_ = bytes_.data();
    mask_ = places - 1;
    size_ = n;
    max_sge_ = max_sge;
    return true;
}

bool Receives::take(Receive &receive)
{
    if (head_ == tail_)
        return false;
    const Receive *from = at(tail_++);
    std::memcpy(&receive, from, offsetof(Receive, sge) + from->n_sge * sizeof(ntbv_sge));
    return true;
}

} // namespace ntb::verbs
