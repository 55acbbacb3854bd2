// SPDX-License-Identifier: BSD-3-Clause
#include "peers/pair/meeting.hpp"

#include "kernel/kernels.hpp"
#include "realtime.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace peers
{

namespace
{

constexpr uint64_t meet_ns = 30000000000u; ///< a host may start slowly on a busy machine
constexpr uint64_t probe_ns = 1000000000u;
constexpr uint64_t probe_rounds = 5000;
constexpr uint64_t polls_per_clock = 4096;

} // namespace

Meeting::~Meeting()
{
    if (m_shared)
        munmap(m_shared, sizeof(Shared));
}

bool Meeting::open(const char *path, unsigned side, bool realtime)
{
    const int fd = ::open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    struct stat status = {};
    void *at = MAP_FAILED;
    if (fstat(fd, &status) == 0 && static_cast<size_t>(status.st_size) < sizeof(Shared))
        errno = EINVAL;
    else
        at =
            mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    const int error = errno;
    close(fd);
    errno = error;
    m_shared = at == MAP_FAILED ? nullptr : static_cast<Shared *>(at);
    m_side = side;
    m_realtime = realtime;
    return m_shared != nullptr;
}

bool Meeting::meet()
{
    // Pairs with the load below in the other process: what we wrote before is seen after it.
    const uint32_t point = mine().arrived.load(std::memory_order_relaxed) + 1;
    mine().arrived.store(point, std::memory_order_release);
    const uint64_t give_up = monotonic_ns() + meet_ns;
    for (uint64_t spin = 1; theirs().arrived.load(std::memory_order_acquire) < point; spin++) {
        if (theirs().failed.load(std::memory_order_relaxed) != 0)
            return false;
        if (spin % polls_per_clock == 0 && monotonic_ns() > give_up)
            return false;
    }
    return true;
}

void Meeting::fail()
{
    mine().failed.store(1, std::memory_order_relaxed);
}

double Meeting::probe()
{
    bench::PingLine &line = m_shared->lines[m_side];
    line = {};
    if (!meet())
        return 0;
    const app::Realtime realtime(m_realtime);
    const bench::PingDone done =
        bench::best_kernel().ping({&line, &m_shared->lines[1 - m_side], bench::PingForm::word,
                                   starts(), probe_rounds, probe_ns});
    // Cut short it is a very long round trip, which says that the cores were taken away.
    return static_cast<double>(done.ns) / static_cast<double>(done.rounds != 0 ? done.rounds : 1);
}

} // namespace peers
