// SPDX-License-Identifier: BSD-3-Clause
#include "queue/requests.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
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

int Requests::put(std::uint32_t number, const ntbv_send_wr &wr)
{
    const bool is_local = wr.opcode == NTBV_LOCAL_INV || wr.opcode == NTBV_BIND_MW;
    const auto n_sge = is_local ? 0 : static_cast<std::uint32_t>(wr.n_sge);
    const ntbv_sge *sge = wr.sge;
    std::uint64_t bytes = 0;
    if (n_sge > NTBV_MAX_SGE)
        return -EINVAL;
    for (std::uint32_t i = 0; i < n_sge; ++i)
        bytes += sge[i].length;
    const bool is_inline = (wr.flags & NTBV_INLINE) != 0;
    const bool has_data = wr.opcode < NTBV_READ || wr.opcode == NTBV_SEND_INV;
    if (is_inline ? bytes > max_inline_ || !has_data : n_sge > max_sge_ || bytes > NTBV_MAX_MESSAGE)
        return -EINVAL;
    Request &request = (*this)[number];
    request = {.id = wr.id,
               .address = wr.remote_address,
               .compare_add = wr.compare_add,
               .swap = wr.swap,
               .bytes = static_cast<std::uint32_t>(bytes),
               .key = wr.remote_key,
               .imm = wr.imm,
               .seq = 0,
               .qpn = wr.remote_qpn,
               .qkey = wr.remote_qkey,
               .lid = wr.remote_lid,
               .opcode = static_cast<std::uint8_t>(wr.opcode),
               .flags = static_cast<std::uint8_t>(wr.flags),
               .n_sge = static_cast<std::uint8_t>(n_sge),
               .status = NTBV_SUCCESS};
    auto *behind = reinterpret_cast<std::byte *>(&request + 1);
    if (!is_inline) {
        auto *pieces = reinterpret_cast<ntbv_sge *>(behind);
        for (std::uint32_t i = 0; i < n_sge; ++i)
            pieces[i] = sge[i];
        return 0;
    }
    for (std::uint32_t i = 0; i < n_sge; ++i) {
        if (sge[i].length != 0)
            std::memcpy(behind, reinterpret_cast<const void *>(sge[i].address), sge[i].length);
        behind += sge[i].length;
    }
    return 0;
}

void Requests::put_binding(std::uint32_t number, const Binding &binding)
{
    std::memcpy(&(*this)[number] + 1, &binding, sizeof(binding));
}

} // namespace ntb::verbs
