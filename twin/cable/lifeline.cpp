// SPDX-License-Identifier: BSD-3-Clause
#include "cable/lifeline.hpp"

#include <climits>
#include <csignal>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/stat.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
using Step = Lifeline::Step;

void go(Lifeline &l, Step step)
{
    pthread_mutex_lock(&l.lock);
    l.step = step;
    pthread_cond_broadcast(&l.changed);
    pthread_mutex_unlock(&l.lock);
}

/// @return the step that came after
Step await_after(Lifeline &l, Step step)
{
    pthread_mutex_lock(&l.lock);
    while (l.step == step)
        pthread_cond_wait(&l.changed, &l.lock);
    const Step now = l.step;
    pthread_mutex_unlock(&l.lock);
    return now;
}

/// Leaves this thread with a table of descriptors of its own and @p fd alone in it.
bool keep_only(int fd)
{
    const auto kept = static_cast<unsigned>(fd);
    return close_range(kept + 1, UINT_MAX, CLOSE_RANGE_UNSHARE) == 0 &&
           (kept == 0 || close_range(0, kept - 1, 0) == 0);
}

void *hold(void *arg)
{
    Lifeline &l = *static_cast<Lifeline *>(arg);
    const bool alone = keep_only(l.writer);
    go(l, alone ? Step::held : Step::failed);
    if (alone)
        await_after(l, Step::held);
    return nullptr; // a table that no other thread has ends with its thread
}
} // namespace

void lifeline_open(const Config &config, Lifeline *out)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    out->writer = ends[1];
    out->step = Step::starting;
    // A signal handler of the application's would find none of its descriptors in that thread.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = config.thread_start(&out->thread, "plx-twin-life", hold, out) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    const bool held = started && await_after(*out, Step::starting) == Step::held;
    close(ends[1]);
    if (held) {
        out->reader = ends[0];
        return;
    }
    close(ends[0]);
    if (started)
        config.thread_join(out->thread);
}

void lifeline_close(const Config &config, Lifeline *lifeline)
{
    if (lifeline->reader < 0)
        return;
    go(*lifeline, Step::ending);
    config.thread_join(lifeline->thread);
    close(lifeline->reader);
    lifeline->reader = -1;
}

bool is_lifeline(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

} // namespace plx::twin
