// SPDX-License-Identifier: BSD-3-Clause
#include "wire/message.hpp"

#include <cstring>

namespace ntb::verbs
{

bool read_header(const std::byte *message, std::uint32_t bytes, Header &header)
{
    if (bytes < sizeof(Header))
        return false;
    std::memcpy(&header, message, sizeof(Header));
    if (header.bytes != bytes - sizeof(Header) || header.total > max_request ||
        header.offset > header.total || (header.to | header.from) > qpn_mask)
        return false;
    // Most are requests in one message, of which there is nothing else to know.
    if (header.kind == Kind::Send && header.bytes == header.total && header.offset == 0 &&
        (header.flags & (flag::last | flag::invalidate | flag::ask | flag::lent)) == flag::last)
        return true;
    const bool whole = header.offset + header.bytes == header.total;
    const bool last = (header.flags & flag::last) != 0;
    // Both would be in `value`.
    if ((header.flags & flag::invalidate) != 0 &&
        (header.kind != Kind::Send || (header.flags & flag::immediate) != 0))
        return false;
    if ((header.flags & flag::ask) != 0 && header.kind != Kind::Write && header.kind != Kind::Read)
        return false;
    // Its data lie at the peer, all of them.
    if ((header.flags & flag::lent) != 0)
        return header.kind == Kind::Send && header.bytes == 0 && header.offset == 0 &&
               header.total != 0 && last;
    switch (header.kind) {
    case Kind::Hello:
        return header.bytes == sizeof(Hello);
    case Kind::Send:
    case Kind::Write:
    case Kind::Data:
        // An empty piece is the only one of an empty request: the others bring it forward.
        return header.bytes <= header.total - header.offset && last == whole &&
               (header.bytes != 0 || header.total == 0);
    case Kind::Read:
        return header.bytes == 0 && header.offset == 0;
    case Kind::FetchAdd:
    case Kind::CmpSwap:
        return header.bytes == 16;
    case Kind::Grant:
    case Kind::Lend:
        return header.bytes == sizeof(Grant);
    case Kind::Ack:
    case Kind::Nak:
    case Kind::Rnr:
    case Kind::Ready:
    case Kind::NotReady:
    case Kind::Again:
    case Kind::Mapped:
    case Kind::Lacks:
        return header.bytes == 0;
    }
    return false;
}

bool read_word(std::uint64_t word, Address own, Address peer, Header &header)
{
    const auto number = [](Address node, std::uint64_t slot) {
        return std::uint32_t{node_of(node)} << slot_bits |
               (static_cast<std::uint32_t>(slot) & ((1U << slot_bits) - 1));
    };
    if ((word & leaves_ack) == 0)
        return false;
    header = {.kind = Kind::Ack,
              .flags = 0,
              .attempt = 0,
              .to = number(own, word >> (32 + slot_bits)),
              .from = number(peer, word >> 32),
              .seq = static_cast<std::uint32_t>(word)};
    return true;
}

bool read_hello(const std::byte *payload, std::uint32_t bytes, std::uint32_t longest, Address &own)
{
    Hello hello;
    if (bytes != sizeof(hello))
        return false;
    std::memcpy(&hello, payload, sizeof(hello));
    if (hello.magic != hello_magic || hello.version != wire_version || hello.longest != longest ||
        !is_address(hello.own))
        return false;
    own = hello.own;
    return true;
}

} // namespace ntb::verbs
