// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/content.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "crc32c.hpp"
#include "traffic/payload.hpp"

namespace pktgen
{

namespace
{

// A piece is at most so long, and starts in the block wherever the number says: the block is the
// same twice, so that it does not matter how a payload is cut.
constexpr size_t starts = size_t{64} << 10;
constexpr size_t block_bytes = 2 * starts;
constexpr uint32_t block_seed = 1;

std::vector<std::byte> block_of(Pattern pattern)
{
    if (pattern == Pattern::counter)
        return {};
    std::vector<std::byte> block(block_bytes,
                                 pattern == Pattern::ones ? std::byte{0xff} : std::byte{0});
    std::mt19937 random(block_seed);
    for (size_t i = 0; pattern == Pattern::random && i < starts; ++i)
        block[i] = block[i + starts] = static_cast<std::byte>(random());
    return block;
}

uint32_t crc_behind_seal(const std::byte *at, size_t bytes)
{
    return app::crc32c(at + seal_bytes, bytes - seal_bytes, 0);
}

} // namespace

Content::Content(Pattern pattern) : pattern_(pattern), block_(block_of(pattern)) {}

void Content::fill(std::byte *at, size_t bytes, size_t done, uint64_t number) const
{
    if (pattern_ == Pattern::counter) {
        fill_words(at, bytes, number);
        return;
    }
    while (bytes != 0) {
        const size_t n = std::min(bytes, starts);
        std::memcpy(at, &block_[(number * line_bytes + done) % starts], n);
        at += n;
        done += n;
        bytes -= n;
    }
}

void put_seal(std::byte *at, size_t bytes, uint64_t number)
{
    store_word(at, stamp_of(crc_behind_seal(at, bytes), number));
}

Seal check_seal(const std::byte *at, size_t bytes, uint64_t number)
{
    const uint64_t seal = load_word(at);
    if (seal >> 32 != crc_behind_seal(at, bytes))
        return Seal::spoilt;
    return static_cast<uint32_t>(seal) == static_cast<uint32_t>(number) ? Seal::good
                                                                        : Seal::other_number;
}

} // namespace pktgen
