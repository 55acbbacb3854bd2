// SPDX-License-Identifier: BSD-3-Clause
// What both ends of a cable have to agree on.
#ifndef PLX_TWIN_HOST_WIRING_HPP
#define PLX_TWIN_HOST_WIRING_HPP

#include <cstdint>

namespace plx::twin
{

struct Config;

struct Wiring {
    bool one_chip = false;
    unsigned nt = 0;
    bool link_side = false;
    unsigned dma_link_channels = 0; ///< of a shared chip
};
Wiring wiring_of(const Config &config);
/// As it crosses the cable.
uint32_t wiring_word(const Wiring &wiring);
/// @return false when @p word is none
bool wiring_from(uint32_t word, Wiring *out);
/// @return NULL, or in words what does not fit
const char *wiring_conflict(const Wiring &own, const Wiring &theirs);

} // namespace plx::twin

#endif
