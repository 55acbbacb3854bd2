// SPDX-License-Identifier: BSD-3-Clause
// The windows that a host looks through: ranges of its addresses, mapped to what its view says.
#ifndef PLX_TWIN_HOST_WINDOW_HPP
#define PLX_TWIN_HOST_WINDOW_HPP

#include "chip/routing.hpp"

namespace plx::twin
{

struct Window {
    uint8_t *base = nullptr;
    uint64_t bus = 0; ///< what it is on this host's bus: where it was at first
    uint64_t bytes = 0;
    int absent_fd = -1; ///< all-ones, mapped privately wherever nothing answers
    uint64_t absent_bytes = 0;
};

/// @return 0 or -ENOMEM
int window_open(uint64_t bytes, Window *out);
void window_close(Window *window);

/// Maps windows to @p after where they were mapped to @p before. What is the same stays untouched,
/// also while other threads use it.
/// @param fds of the far host's regions; -1: not exposed
void windows_follow(Window *windows, const View &before, const View &after, const int *fds);

/// Maps a window to another address, as @p view says. @p old, where it was, becomes memory of its
/// own: what is stored there reaches no peer.
/// @param remote, fds of the far host's regions
/// @return 0 or -ENOMEM, with nothing changed
int window_move(Window *window, unsigned index, const View &view, const Region *remote,
                const int *fds, void **old);

} // namespace plx::twin

#endif
