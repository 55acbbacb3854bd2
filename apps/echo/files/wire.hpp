// SPDX-License-Identifier: BSD-3-Clause
// What travels between two hosts in mode file: pure, no mbufs, no files.
#ifndef ECHO_FILES_WIRE_HPP
#define ECHO_FILES_WIRE_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace echo::file
{

/// A message begins with 32 bytes, all numbers little-endian: kind (1 byte), version (1),
/// length of the name (2), value (4), transfer (8), number (8), time (8). Behind them an offer has
/// the name, and data have the file's bytes.
inline constexpr size_t header_bytes = 32;
inline constexpr uint8_t version = 1;
inline constexpr size_t most_name_bytes = 4095;

/// The sender of a file offers it; the receiver accepts it from an offset on, because it may have
/// the beginning from an earlier attempt; data, and the end with the CRC of the whole; the receiver
/// says that it has it. Either side can abort. A folder is offered, and the receiver says that it
/// has it.
enum class Kind : uint8_t {
    offer = 1, ///< value: type and permissions, as st_mode; number: bytes; time: of modification
    accept,    ///< value: CRC-32C of the bytes that are there; number: how many
    data,      ///< number: offset of the first byte
    end,       ///< value: CRC-32C of all; number: bytes
    done,      ///< the same, from the receiver
    abort,     ///< value: errno, Linux' numbers
};

struct Message {
    Kind kind;
    uint32_t value = 0;
    uint64_t transfer = 0; ///< chosen by the sender of the file, another one for each offer
    uint64_t number = 0;   ///< at most INT64_MAX
    int64_t time_ns = 0;
    std::string name = {}; ///< of an offer: unchecked, see name_is_safe()
    size_t data_bytes = 0; ///< of data, behind the header
};

/// @param head   the first bytes of the message: header_bytes + most_name_bytes of it, or all
/// @param bytes  its whole length
/// @return nothing: this is no message of the protocol
std::optional<Message> decode(std::span<const std::byte> head, size_t bytes);

/// Writes the header of @p message. Its name, or its data, follow.
void encode(const Message &message, std::span<std::byte, header_bytes> out);

/// Whether a name leads to somewhere inside a folder, whatever is there: relative, no empty
/// component, no "." and "..", no NUL, nothing longer than a file system takes, and none of the
/// names that partial files have.
bool name_is_safe(std::string_view name);

/// What begins the name of a partial file.
inline constexpr std::string_view part_prefix = ".ntbmsg-part-";

/// The name of the partial file of an offer: the same for the same name, size and time.
std::string part_name(const Message &offer);

/// A name as a terminal can bear it: shortened, control characters as '?'.
std::string printable(std::string_view name);

} // namespace echo::file

#endif
