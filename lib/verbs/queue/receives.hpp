// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_QUEUE_RECEIVES_HPP
#define NTB_VERBS_QUEUE_RECEIVES_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "memory/lazy.hpp"
#include "ntbv.h"

namespace ntb::verbs
{

/// A posted receive.
struct Receive {
    std::uint64_t id;
    std::uint64_t bytes; ///< of all pieces
    std::uint32_t n_sge;
    ntbv_sge sge[NTBV_MAX_SGE];
};

/// Receives in the order of posting.
class Receives
{
public:
    bool create(std::uint32_t n, std::uint32_t max_sge);
    /// @return 0, -EINVAL too many pieces, -ENOMEM full
    int post(const ntbv_recv_wr &wr)
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
    bool take(Receive &receive);
    /// The next one, which has as many pieces as it says. NULL: there is none.
    const Receive *next() const { return head_ == tail_ ? nullptr : at(tail_); }
    /// It was taken where it lies.
    void drop() { ++tail_; }
    /// Bytes that the next one has room for; there is one.
    std::uint64_t next_bytes() const { return at(tail_)->bytes; }
    std::uint32_t count() const { return head_ - tail_; }
    std::uint32_t size() const { return size_; }
    void clear() { tail_ = head_; }

private:
    Receive *at(std::uint32_t n) const
    {
        return reinterpret_cast<Receive *>(memory_ + std::size_t{n & mask_} * stride_);
    }

    Lazy<std::byte> bytes_;
    std::byte *memory_ = nullptr;
    std::size_t stride_ = 0; // of receives with max_sge_ pieces
    std::uint32_t mask_ = 0, size_ = 0, max_sge_ = 0;
    std::uint32_t head_ = 0, tail_ = 0;
};

} // namespace ntb::verbs

#endif
