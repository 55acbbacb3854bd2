// SPDX-License-Identifier: BSD-3-Clause
// CRC-32C (Castagnoli), as iSCSI and ext4 have it.
#ifndef APP_CRC32C_HPP
#define APP_CRC32C_HPP

#include <cstddef>
#include <cstdint>

namespace app
{

/// @param crc  0 to begin with, or the CRC of what came before. @return the CRC of both together
uint32_t crc32c(const void *data, size_t bytes, uint32_t crc = 0);

} // namespace app

#endif
