// SPDX-License-Identifier: BSD-3-Clause
#include "queue/receives.hpp"

#include <bit>
#include <cerrno>
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

int Receives::post(const ntbv_recv_wr &wr)
{
    const auto n_sge = static_cast<std::uint32_t>(wr.n_sge);
    if (n_sge > max_sge_)
        return -EINVAL;
    if (count() == size_)
        return -ENOMEM;
    Receive *receive = at(head_);
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < n_sge; ++i) {
        receive->sge[i] = wr.sge[i];
        bytes += wr.sge[i].length;
    }
    receive->id = wr.id;
    receive->bytes = bytes;
    receive->n_sge = n_sge;
    ++head_;
    return 0;
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
