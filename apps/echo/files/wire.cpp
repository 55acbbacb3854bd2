// SPDX-License-Identifier: BSD-3-Clause
#include "files/wire.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>

#include "crc32c.hpp"

namespace echo::file
{

namespace
{

static_assert(std::endian::native == std::endian::little);

/// As it travels.
struct Header {
    uint8_t kind;
    uint8_t version;
    uint16_t name_bytes;
    uint32_t value;
    uint64_t transfer;
    uint64_t number;
    int64_t time_ns;
};
static_assert(sizeof(Header) == header_bytes);

constexpr size_t longest_component = 255;
constexpr size_t most_shown = 200;
constexpr uint32_t last_errno = 4095;

bool offer_is_sound(const Header &h, size_t bytes)
{
    const uint32_t type = h.value & S_IFMT;
    if (h.name_bytes == 0 || h.name_bytes > most_name_bytes || bytes != sizeof(h) + h.name_bytes)
        return false;
    return type == S_IFREG || (type == S_IFDIR && h.number == 0);
}

bool is_sound(const Header &h, size_t bytes)
{
    if (h.version != version || h.number > INT64_MAX)
        return false;
    switch (static_cast<Kind>(h.kind)) {
    case Kind::offer:
        return offer_is_sound(h, bytes);
    case Kind::data:
        return bytes > sizeof(h) && h.number <= INT64_MAX - (bytes - sizeof(h));
    case Kind::abort:
        return bytes == sizeof(h) && h.value != 0 && h.value <= last_errno;
    case Kind::accept:
    case Kind::end:
    case Kind::done:
        return bytes == sizeof(h);
    }
    return false;
}

bool component_is_safe(std::string_view part)
{
    return !part.empty() && part.size() <= longest_component && part != "." && part != ".." &&
           !part.starts_with(part_prefix);
}

} // namespace

std::optional<Message> decode(std::span<const std::byte> head, size_t bytes)
{
    Header h;
    if (head.size() < sizeof(h) || bytes < head.size())
        return std::nullopt;
    std::memcpy(&h, head.data(), sizeof(h));
    if (!is_sound(h, bytes))
        return std::nullopt;
    Message message{static_cast<Kind>(h.kind), h.value, h.transfer, h.number, h.time_ns};
    if (message.kind == Kind::data)
        message.data_bytes = bytes - sizeof(h);
    if (message.kind != Kind::offer)
        return message;
    if (head.size() != bytes)
        return std::nullopt;
    message.name.assign(reinterpret_cast<const char *>(head.data()) + sizeof(h), h.name_bytes);
    return message;
}

void encode(const Message &message, std::span<std::byte, header_bytes> out)
{
    const Header h{static_cast<uint8_t>(message.kind),
                   version,
                   static_cast<uint16_t>(message.name.size()),
                   message.value,
                   message.transfer,
                   message.number,
                   message.time_ns};
    std::memcpy(out.data(), &h, sizeof(h));
}

bool name_is_safe(std::string_view name)
{
    if (name.size() > most_name_bytes || name.find('\0') != std::string_view::npos)
        return false;
    for (;;) {
        const size_t end = name.find('/');
        if (!component_is_safe(name.substr(0, end)))
            return false;
        if (end == std::string_view::npos)
            return true;
        name.remove_prefix(end + 1);
    }
}

std::string part_name(const Message &offer)
{
    const uint64_t identity[2] = {offer.number, static_cast<uint64_t>(offer.time_ns)};
    const uint32_t low = app::crc32c(offer.name.data(), offer.name.size());
    const uint32_t high = app::crc32c(identity, sizeof(identity), ~low);
    char text[part_prefix.size() + 17];
    std::snprintf(text, sizeof(text), "%s%08x%08x", part_prefix.data(), high, low);
    return text;
}

std::string printable(std::string_view name)
{
    std::string text(name.substr(0, most_shown));
    std::ranges::replace_if(
        text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
    return name.size() > most_shown ? text + "..." : text;
}

} // namespace echo::file
