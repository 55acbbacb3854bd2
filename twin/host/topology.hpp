// SPDX-License-Identifier: BSD-3-Clause
// What stands between two hosts: what both have to agree on, and a chip that both of them are on.
//
// A shared chip is powered before either host and stays with whichever is left. Consequences of a
// link change are carried out from its virtual side, or from the link side while nobody is there.
// Who comes to a chip that it did not know, because it heard too late of the other end, restarts
// it.
#ifndef PLX_TWIN_HOST_TOPOLOGY_HPP
#define PLX_TWIN_HOST_TOPOLOGY_HPP

#include <cstdint>

namespace plx::twin
{

class Host;
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

// ---- a shared chip; under the host's lock

/// The host's place on its new chip: a link-side host is plugged in, and enumerated, by the time
/// that it is attached. @return false: no memory
bool take_place(Host &host);
/// The other end offers the chip that it is on.
/// @param fd taken over
/// @param yields whether this end gives way where neither chip has seen two hosts
/// @return false when the two can not come together
bool meet_chip(Host &host, int fd, bool yields);
/// Whether a link-side host finds nothing behind its root port.
bool cut_off(const Host &host);
/// Whether it is this host that carries out link changes in its chip.
bool carries_out(const Host &host);
/// Enumerates anew after a link change. @return whether there was one
bool notice_link(Host &host);

} // namespace plx::twin

#endif
