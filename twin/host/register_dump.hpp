// SPDX-License-Identifier: BSD-3-Clause
// A card's registers as text, as tools/plx-doctor prints them: what a chip is to hold at power-on.
#ifndef PLX_TWIN_HOST_REGISTER_DUMP_HPP
#define PLX_TWIN_HOST_REGISTER_DUMP_HPP

#include "twin.hpp"

#include <cstdint>

namespace plx::twin
{

/// One word of a file.
struct RegisterWord {
    uint32_t offset; ///< CSR offset, a multiple of 4
    uint32_t value;
};

struct RegisterDump {
    RegisterWord *words = nullptr; ///< malloc'ed; free by register_dump_free()
    uint32_t count = 0;
};

/// Reads a file: "# plx-registers 1 ..." in its first line, then "offset value name" in hex.
/// @return 0; -EINVAL what is wrong and in which line, -EFBIG, -ENOMEM, or why it cannot be read
int register_dump_read(const char *path, RegisterDump *out, Error *error);
void register_dump_free(RegisterDump *file);

} // namespace plx::twin

#endif
