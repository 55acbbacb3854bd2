// SPDX-License-Identifier: BSD-3-Clause
// Shared by the files of Chip: the BAR of each window, and the addresses of windows on the link
// bus.
#ifndef PLX_NTB_HW_CHIP_PLAN_HPP
#define PLX_NTB_HW_CHIP_PLAN_HPP

#include <cstdint>

#include "identify.hpp"

namespace plx::hw
{

inline constexpr unsigned shared_bar = 4;

/// The BAR that a window of Chip is behind.
constexpr unsigned bar_of(unsigned window)
{
    return window == 0 ? 2 : shared_bar;
}

// The link bus is private to the two chips: addresses follow from the BAR number alone, so two
// drivers agree without a message.                                                        FBSD R
constexpr uint64_t link_bus(unsigned bar)
{
    return uint64_t{bar} << 61;
}

constexpr uint32_t low(uint64_t value)
{
    return static_cast<uint32_t>(value);
}
constexpr uint32_t high(uint64_t value)
{
    return static_cast<uint32_t>(value >> 32);
}

inline int refuse(Refusal *why, int error, const char *what, uint64_t found, uint64_t expected = 0)
{
    if (why != nullptr)
        *why = {what, found, expected};
    return error;
}

} // namespace plx::hw

#endif
