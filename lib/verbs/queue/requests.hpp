// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_QUEUE_REQUESTS_HPP
#define NTB_VERBS_QUEUE_REQUESTS_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "memory/keys.hpp"
#include "memory/lazy.hpp"
#include "ntbv.h"
#include "wire/address.hpp"
#include "wire/message.hpp"

namespace ntb::verbs
{

constexpr bool is_send(std::uint32_t opcode)
{
    return opcode == NTBV_SEND || opcode == NTBV_SEND_IMM || opcode == NTBV_SEND_INV;
}

/// Of the completions of requests, by their opcodes.
constexpr std::uint8_t wc_opcodes[] = {
    NTBV_WC_WRITE,   NTBV_WC_WRITE,     NTBV_WC_SEND,      NTBV_WC_SEND,    NTBV_WC_READ,
    NTBV_WC_CMP_SWP, NTBV_WC_FETCH_ADD, NTBV_WC_LOCAL_INV, NTBV_WC_BIND_MW, NTBV_WC_SEND};
static_assert(wc_opcodes[NTBV_WRITE_IMM] == NTBV_WC_WRITE &&
              wc_opcodes[NTBV_SEND] == NTBV_WC_SEND && wc_opcodes[NTBV_SEND_IMM] == NTBV_WC_SEND &&
              wc_opcodes[NTBV_READ] == NTBV_WC_READ &&
              wc_opcodes[NTBV_CMP_SWP] == NTBV_WC_CMP_SWP &&
              wc_opcodes[NTBV_FETCH_ADD] == NTBV_WC_FETCH_ADD &&
              wc_opcodes[NTBV_LOCAL_INV] == NTBV_WC_LOCAL_INV &&
              wc_opcodes[NTBV_BIND_MW] == NTBV_WC_BIND_MW &&
              wc_opcodes[NTBV_SEND_INV] == NTBV_WC_SEND && sizeof(wc_opcodes) == NTBV_SEND_INV + 1);

/// Of Request::flags, where those of the program have nothing: it went without its data.
constexpr std::uint8_t was_lent = 0x80;
static_assert((was_lent & (NTBV_FENCE | NTBV_SIGNALED | NTBV_SOLICITED | NTBV_INLINE)) == 0);

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
    std::uint8_t wc_opcode() const { return wc_opcodes[opcode]; }
    bool has_imm() const { return opcode == NTBV_WRITE_IMM || opcode == NTBV_SEND_IMM; }
    /// Of what it says in its first message and in all others.
    std::uint8_t wire_flags() const
    {
        return static_cast<std::uint8_t>(((flags & NTBV_SOLICITED) != 0 ? flag::solicited : 0) |
                                         (has_imm() ? flag::immediate : 0) |
                                         (opcode == NTBV_SEND_INV ? flag::invalidate : 0));
    }
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
    /// @param is_plain  a SEND to a peer that is known: of it nothing is read behind `imm`
    /// @retval -EINVAL too many pieces or bytes, or inline where there is nothing to send
    int put(std::uint32_t number, const ntbv_send_wr &wr, bool is_plain)
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
        if (is_inline ? bytes > max_inline_ || !has_data
                      : n_sge > max_sge_ || bytes > NTBV_MAX_MESSAGE)
            return -EINVAL;
        keep(number, wr, n_sge, static_cast<std::uint32_t>(bytes), is_plain);
        return 0;
    }
    /// The same of a plain one of one piece that was checked already.
    Request &put_lone(std::uint32_t number, const ntbv_send_wr &wr)
    {
        return keep(number, wr, 1, wr.sge->length, true);
    }
    void put_binding(std::uint32_t number, const Binding &binding);
    Request &operator[](std::uint32_t number)
    {
        return *reinterpret_cast<Request *>(memory_ + std::size_t{number & mask_} * stride_);
    }
    std::uint32_t size() const { return size_; }
    std::uint32_t max_sge() const { return max_sge_; }
    std::uint32_t max_inline() const { return max_inline_; }

private:
    Request &keep(std::uint32_t number, const ntbv_send_wr &wr, std::uint32_t n_sge,
                  std::uint32_t bytes, bool is_plain)
    {
        Request &request = (*this)[number];
        request.id = wr.id;
        request.bytes = bytes;
        request.imm = wr.imm;
        request.seq = 0;
        request.opcode = static_cast<std::uint8_t>(wr.opcode);
        request.flags = static_cast<std::uint8_t>(wr.flags);
        request.n_sge = static_cast<std::uint8_t>(n_sge);
        request.status = NTBV_SUCCESS;
        if (is_plain) {
            request.address = 0; // both go into the header
            request.key = 0;
        } else {
            request.address = wr.remote_address;
            request.key = wr.remote_key;
            // Of a write or a read to a peer that is known these may be anything.
            request.compare_add = wr.compare_add;
            request.swap = wr.swap;
            request.qpn = wr.remote_qpn;
            request.qkey = wr.remote_qkey;
            request.lid = wr.remote_lid;
        }
        auto *const behind = reinterpret_cast<std::byte *>(&request + 1);
        if (request.is_inline()) {
            gather(wr.sge, n_sge, behind);
            return request;
        }
        auto *const pieces = reinterpret_cast<ntbv_sge *>(behind);
        for (std::uint32_t i = 0; i < n_sge; ++i)
            pieces[i] = wr.sge[i];
        return request;
    }
    static void gather(const ntbv_sge *sge, std::uint32_t n_sge, std::byte *to);

    Lazy<std::byte> bytes_;
    std::byte *memory_ = nullptr;
    std::size_t stride_ = 0;
    std::uint32_t mask_ = 0, size_ = 0, max_sge_ = 0, max_inline_ = 0;
};

} // namespace ntb::verbs

#endif
