// SPDX-License-Identifier: BSD-3-Clause
#include "queue/requests.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ntb::verbs
{

bool Requests::create(std::uint32_t n, std::uint32_t max_sge, std::uint32_t max_inline)
{
    const std::uint32_t places = std::bit_ceil(n);
    const std::size_t behind =
        std::max({max_sge * sizeof(ntbv_sge), std::size_t{max_inline}, sizeof(Binding)});
    stride_ = (sizeof(Request) + behind + 7) & ~std::size_t{7};
    if (!bytes_.create(places * stride_))
        return false;
    memory_ = bytes_.data();
    mask_ = places - 1;
    size_ = n;
    max_sge_ = max_sge;
    max_inline_ = max_inline;
    return true;
}

void Requests::gather(const ntbv_sge *sge, std::uint32_t n_sge, std::byte *to)
{
    for (std::uint32_t i = 0; i < n_sge; ++i) {
        if (sge[i].length != 0)
            std::memcpy(to, reinterpret_cast<const void *>(sge[i].address), sge[i].length);
        to += sge[i].length;
    }
}

void Requests::put_binding(std::uint32_t number, const Binding &binding)
{
    std::memcpy(&(*this)[number] + 1, &binding, sizeof(binding));
}

} // namespace ntb::verbs
