// SPDX-License-Identifier: BSD-3-Clause
#ifndef PLX_NTB_WINDOW_CHOICE_HPP
#define PLX_NTB_WINDOW_CHOICE_HPP

#include <cstdint>

namespace plx::pmd
{

/// The user's choice for the peer's memory window.
struct WindowChoice {
    uint32_t segment_kib = 2048; ///< of an A-LUT segment where the BAR is large enough
    uint32_t split = 0;          ///< the window is divided into 2^split parts
};

} // namespace plx::pmd

#endif
