// SPDX-License-Identifier: BSD-3-Clause
// HOT. What payloads are filled with, and the seal by which the far end knows one operation's bytes
// from another's, and from spoilt ones.
#ifndef PKTGEN_TRAFFIC_CONTENT_HPP
#define PKTGEN_TRAFFIC_CONTENT_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "point/point.hpp"

namespace pktgen
{

class Content
{
public:
    explicit Content(Pattern pattern);

    /// @param done    bytes of the same payload that lie in front, whole lines
    /// @param number  of the payload: patterns but zeros and ones differ by it
    void fill(std::byte *at, size_t bytes, size_t done, uint64_t number) const;

private:
    const Pattern pattern_;
    std::vector<std::byte> block_; ///< what patterns other than the counter are copied from
};

/// Puts number and CRC of the rest over the first seal_bytes. @param bytes  at least seal_bytes
void put_seal(std::byte *at, size_t bytes, uint64_t number);

enum class Seal { good, other_number, spoilt };
Seal check_seal(const std::byte *at, size_t bytes, uint64_t number);

} // namespace pktgen

#endif
