// SPDX-License-Identifier: BSD-3-Clause
// Direct memory of the program (decision 042): whether it is wanted, and what became of it.
#include "shim/direct.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <pthread.h>
#include <unistd.h>

#include "locked.hpp"
#include "ntbv.h"

namespace ntb::verbs::shim
{
namespace
{

constexpr const char *why_served[NTBV_N_COUNTS] = {
    nullptr,
    "does not begin and end at a page",
    "has no right for peers",
    "may have windows",
    "shares a page with another one",
    "is not all plain private anonymous memory that can be read and written",
    "found no segment: quota or memory is used up",
    "could not be exchanged",
};
static_assert(NTBV_COUNT_GRANTED == 8, "a reason is missing");

constexpr int max_engines = 64;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // of what follows
ntbv_engine *engines[max_engines];
std::uint64_t totals[NTBV_N_COUNTS];
pid_t reporter; // the process that says it: no child of it

void add(ntbv_engine *engine)
{
    for (int i = 0; i < NTBV_N_COUNTS; ++i)
        totals[i] += ntbv_engine_count(engine, static_cast<ntbv_count>(i));
}

bool is_on(const char *name)
{
    const char *const value = getenv(name);
    return value && strcmp(value, "1") == 0;
}

// Engines of devices that were not closed are still there.
void report()
{
    if (getpid() != reporter)
        return;
    const Locked locked(mutex);
    for (ntbv_engine *&engine : engines) {
        if (engine)
            add(engine);
        engine = nullptr;
    }
    fprintf(stderr,
            "ntbverbs: direct memory: %" PRIu64 " regions, %" PRIu64 " grants, %" PRIu64
            " refused by the way to the peer; %" PRIu64 " writes and %" PRIu64
            " reads without a message, %" PRIu64 " sends without data in theirs\n",
            totals[NTBV_COUNT_SHARED], totals[NTBV_COUNT_GRANTED], totals[NTBV_COUNT_NOT_GRANTED],
            totals[NTBV_COUNT_WRITES], totals[NTBV_COUNT_READS], totals[NTBV_COUNT_LENT]);
    for (int i = 0; i < NTBV_N_COUNTS; ++i)
        if (why_served[i] && totals[i] != 0)
            fprintf(stderr, "ntbverbs: served by messages: %" PRIu64 " regions of which each %s\n",
                    totals[i], why_served[i]);
}

} // namespace

void begin_direct(ntbv_node *node)
{
    const bool sends = is_on("NTB_VERBS_DIRECT_SENDS");
    if (!sends && !is_on("NTB_VERBS_DIRECT"))
        return;
    const int error = ntbv_node_be_direct(node, sends ? NTBV_DIRECT_SENDS : NTBV_DIRECT);
    if (error != 0) {
        fprintf(stderr, "ntbverbs: memory is not direct: %s\n", strerror(-error));
        return;
    }
    const Locked locked(mutex);
    if (reporter == 0 && is_on("NTB_VERBS_VERBOSE")) {
        reporter = getpid();
        atexit(report);
    }
    for (ntbv_engine *&engine : engines) {
        if (!engine) {
            engine = ntbv_node_engine(node);
            break;
        }
    }
}

void forget_direct(ntbv_engine *closed)
{
    const Locked locked(mutex);
    for (ntbv_engine *&engine : engines) {
        if (engine == closed) {
            add(engine);
            engine = nullptr;
        }
    }
}

} // namespace ntb::verbs::shim
