// SPDX-License-Identifier: BSD-3-Clause
#include "crc32c.hpp"

#include <cstring>

#include <rte_hash_crc.h>

namespace app
{

// DPDK's loop over a buffer loads words through misaligned pointers, which C++ does not allow; its
// steps are the processor's instruction where there is one.
uint32_t crc32c(const void *data, size_t bytes, uint32_t crc)
{
    const auto *at = static_cast<const unsigned char *>(data);
    crc = ~crc;
    for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word;
        std::memcpy(&word, at, sizeof(word));
        crc = rte_hash_crc_8byte(word, crc);
    }
    for (; bytes != 0; --bytes, ++at)
        crc = rte_hash_crc_1byte(*at, crc);
    return ~crc;
}

} // namespace app
