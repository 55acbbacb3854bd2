// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_QUEUE_REQUESTS_HPP
#define NTB_VERBS_QUEUE_REQUESTS_HPP

#include <cstddef>
#include <cstdint>

#include "memory/keys.hpp"
#include "memory/lazy.hpp"
#include "ntbv.h"
#include "wire/address.hpp"

namespace ntb::verbs
{

/// A posted request. Its pieces, its inline data, or its binding follow it.
struct Request {
    std::uint64_t id;
    std::uint64_t address;
    std::uint64_t compare_add, swap;
    std::uint32_t bytes;
    std::uint32_t key;
    std::uint32_t imm; // or the key that it ends
    std::uint32_t seq; // on the wire, once it was sent; of a local one: of the next that goes there
    std::uint32_t qpn, qkey;
    std::uint16_t lid;
    std::uint8_t opcode;
    std::uint8_t flags;
    std::uint8_t n_sge;
    std::uint8_t status; // why it cannot be sent

    bool is_read() const { return opcode >= NTBV_READ && opcode <= NTBV_FETCH_ADD; }
    bool is_local() const { return opcode == NTBV_LOCAL_INV || opcode == NTBV_BIND_MW; }
    bool is_write() const { return opcode <= NTBV_WRITE_IMM; }
    bool has_imm() const { return opcode == NTBV_WRITE_IMM || opcode == NTBV_SEND_IMM; }
    Address peer() const { return address_of(lid, qpn); } // of a datagram
    bool is_inline() const { return (flags & NTBV_INLINE) != 0; }
    const ntbv_sge *pieces() const { return reinterpret_cast<const ntbv_sge *>(this + 1); }
    const Binding &binding() const { return *reinterpret_cast<const Binding *>(this + 1); }
    const std::byte *data() const { return reinterpret_cast<const std::byte *>(this + 1); }
};
static_assert(sizeof(Request) % alignof(ntbv_sge) == 0);

/// The requests of a send queue by their number, which counts from 0.
class Requests
{
public:
    bool create(std::uint32_t n, std::uint32_t max_sge, std::uint32_t max_inline);
    /// Copies a request, with its data if they are inline. Those of a local one do not count.
    /// @retval -EINVAL too many pieces or bytes, or inline where there is nothing to send
    int put(std::uint32_t number, const ntbv_send_wr &wr);
    void put_binding(std::uint32_t number, const Binding &binding);
    Request &operator[](std::uint32_t number)
    {
        return *reinterpret_cast<Request *>(memory_ + std::size_t{number & mask_} * stride_);
    }
    std::uint32_t size() const { return size_; }
    std::uint32_t max_sge() const { return max_sge_; }
    std::uint32_t max_inline() const { return max_inline_; }

private:
    Lazy<std::byte> bytes_;
    std::byte *memory_ = nullptr;
    std::size_t stride_ = 0;
    std::uint32_t mask_ = 0, size_ = 0, max_sge_ = 0, max_inline_ = 0;
};

} // namespace ntb::verbs

#endif
