// SPDX-License-Identifier: BSD-3-Clause
// Structs of the interface whose first field is `size`: callers may have been compiled with an
// earlier or later version of them (ntbmsg.h and rte_pmd_plx_ntb.h, "Sizes").
#ifndef NTB_COMMON_SIZED_HPP
#define NTB_COMMON_SIZED_HPP

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace ntb
{

/// No version is larger: a size above comes from a field that was not set.
constexpr size_t max_struct_bytes = 4096;

/// Copies a caller's struct of any version to ours; what it lacks is 0.
/// @param first  size of the first version
/// @return 0; -EINVAL: the size is invalid; -E2BIG: fields are set that are not known here
template <typename T>
int read_sized(const T &from, size_t first, T &to)
{
    const size_t size = from.size;
    if (size < first || size > max_struct_bytes)
        return -EINVAL;
    const auto *bytes = reinterpret_cast<const std::byte *>(&from);
    for (size_t i = sizeof(T); i < size; ++i)
        if (bytes[i] != std::byte{0})
            return -E2BIG;
    to = {};
    std::memcpy(&to, bytes, std::min(size, sizeof(T)));
    to.size = sizeof(T);
    return 0;
}

/// Fills in a caller's struct of any version; what is not known here becomes 0.
/// @return 0; -EINVAL: its size is invalid
template <typename T>
int write_sized(const T &from, size_t first, T &to)
{
    const size_t size = to.size;
    if (size < first || size > max_struct_bytes)
        return -EINVAL;
    auto *bytes = reinterpret_cast<std::byte *>(&to);
    std::memcpy(bytes, &from, std::min(size, sizeof(T)));
    for (size_t i = sizeof(T); i < size; ++i)
        bytes[i] = std::byte{0};
    to.size = size;
    return 0;
}

} // namespace ntb

#endif
