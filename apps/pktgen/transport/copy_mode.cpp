// SPDX-License-Identifier: BSD-3-Clause
#include "transport/copy_mode.hpp"

#include <rte_pmd_plx_ntb.h>
#include <rte_rawdev.h>

namespace pktgen
{

namespace
{

constexpr const char *attribute = "copy_mode";
constexpr const char *names[copy_mode_count] = {"auto", "cpu", "dma"};

} // namespace

const char *name_of(CopyMode mode)
{
    return names[static_cast<unsigned>(mode)];
}

CopyMode copy_mode_of(const std::string &device)
{
    uint64_t mode = 0;
    const int id = rte_pmd_plx_ntb_find(device.c_str());
    if (id < 0 || rte_rawdev_get_attr(static_cast<uint16_t>(id), attribute, &mode) != 0 ||
        mode >= copy_mode_count)
        return CopyMode::automatic;
    return static_cast<CopyMode>(mode);
}

bool set_copy_mode(const std::string &device, CopyMode mode)
{
    const int id = rte_pmd_plx_ntb_find(device.c_str());
    return id >= 0 && rte_rawdev_set_attr(static_cast<uint16_t>(id), attribute,
                                          static_cast<uint64_t>(mode)) == 0;
}

} // namespace pktgen
