// SPDX-License-Identifier: BSD-3-Clause
// A child: one host, one polling thread on one core, doing what the parent commands.
#ifndef BENCH_HOST_WORKER_HPP
#define BENCH_HOST_WORKER_HPP

#include "host/host.hpp"

namespace bench
{

struct WorkerOptions {
    HostOptions host;
    int shared_fd;
    int parent;    ///< process id
    bool realtime; ///< poll with real-time priority while something is measured
};

/// Runs commands until one says quit or the parent is gone. @return exit status
int worker_main(const WorkerOptions &);

} // namespace bench

#endif
