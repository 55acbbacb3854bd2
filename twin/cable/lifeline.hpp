// SPDX-License-Identifier: BSD-3-Clause
// How the other end of a cable learns of the death of this process before the kernel has taken the
// process apart. The connection closes last: behind the memory, and not at all while a child that
// was forked has it too. So a thread of its own holds the only writer of a pipe, in a table of
// descriptors of its own: killed, it closes that first, whatever the others have left to do.
#ifndef PLX_TWIN_CABLE_LIFELINE_HPP
#define PLX_TWIN_CABLE_LIFELINE_HPP

#include "twin.hpp"

#include <pthread.h>

namespace plx::twin
{

struct Lifeline {
    int reader = -1; ///< for other ends: it is hung up when this process dies
    // Of the thread.
    void *thread = nullptr;
    int writer = -1;
    enum class Step { starting, held, failed, ending } step = Step::starting;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
};
/// Without one, where the kernel or a lack of descriptors refuses it, the other end learns of a
/// death from the connection. @param config for its threads
void lifeline_open(const Config &config, Lifeline *out);
void lifeline_close(const Config &config, Lifeline *lifeline);
/// Whether @p fd may be the other end's: nothing but a pipe is polled, for what a stranger sends
/// might block.
bool is_lifeline(int fd);

} // namespace plx::twin

#endif
