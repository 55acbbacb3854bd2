// SPDX-License-Identifier: BSD-3-Clause
#include "base/caller_checks.hpp"

#ifdef NTBMSG_CHECKS

#include <pthread.h>

#include <rte_debug.h>

#include <locked.hpp>

#include "base/log.hpp"

namespace ntbmsg
{

namespace
{

/// The objects closed last: their memory is not reused yet.
constexpr unsigned kept_max = 256;
pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
void *kept[kept_max];
unsigned kept_next;

} // namespace

Using::Using(Watch *watch, const char *object, const char *call) : watch_(watch)
{
    if (watch == nullptr)
        return;
    const int own = rte_gettid();
    int inside = 0;
    if (watch->thread.compare_exchange_strong(inside, own, std::memory_order_relaxed)) {
        watch->call.store(call, std::memory_order_relaxed);
        return;
    }
    watch_ = nullptr; // called from a callback: the outer call leaves
    if (inside == own)
        return;
    const char *other = watch->call.load(std::memory_order_relaxed);
    rte_panic("ntbmsg: thread %d calls %s() while thread %d is in %s(): one thread at a time uses "
              "a %s (%p)\n",
              own, call, inside, other != nullptr ? other : "another call", object,
              static_cast<void *>(watch));
}

void Using::leave()
{
    if (watch_ == nullptr)
        return;
    watch_->call.store(nullptr, std::memory_order_relaxed);
    watch_->thread.store(0, std::memory_order_relaxed);
    watch_ = nullptr;
}

bool is_inside(const Watch *watch)
{
    return watch->thread.load(std::memory_order_relaxed) == rte_gettid();
}

void report_stale(const void *handle, const char *call)
{
    NTBMSG_LOG(ERR, "%s() with a handle that was closed before: %p", call, handle);
}

void free_late(void *memory)
{
    const ntb::Locked held(kept_lock);
    rte_free(kept[kept_next]);
    kept[kept_next] = memory;
    kept_next = (kept_next + 1) % kept_max;
}

} // namespace ntbmsg

#endif
