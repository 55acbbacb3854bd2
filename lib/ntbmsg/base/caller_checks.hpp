// SPDX-License-Identifier: BSD-3-Clause
// Checks of how callers use objects (meson option `checks`): one thread at a time, and no handle
// after its close. In other builds a Watch has no bytes and costs no instruction.
#ifndef NTBMSG_BASE_CALLER_CHECKS_HPP
#define NTBMSG_BASE_CALLER_CHECKS_HPP

#include <atomic>
#include <cstdint>

#include <rte_malloc.h>

namespace ntbmsg
{

#ifdef NTBMSG_CHECKS

/// Of an object. All zeros: not alive. Accesses are relaxed throughout, so that the check does not
/// add an ordering that builds without it lack.
struct Watch {
    std::atomic<bool> alive;
    std::atomic<int> thread;        ///< inside; 0: none
    std::atomic<const char *> call; ///< that the thread is in
};

/// Marks a thread as inside an object for its own life. A second thread ends the process; a nested
/// call of the same thread is allowed.
class Using
{
public:
    /// @param watch  NULL: any number of threads may be inside
    Using(Watch *watch, const char *object, const char *call);
    ~Using() { leave(); }
    Using(const Using &) = delete;
    Using &operator=(const Using &) = delete;
    /// Ends it early: another thread may use the object from here on.
    void leave();

private:
    Watch *watch_; ///< NULL: nothing to leave
};

/// Whether the calling thread is inside.
bool is_inside(const Watch *watch);

/// Logs that a handle was used after its close.
void report_stale(const void *handle, const char *call);

/// Whether @p object is a handle that was not closed.
template <class T>
inline bool is_live(const T *object, const char *call)
{
    if (object == nullptr || object->watch.alive.load(std::memory_order_relaxed))
        return object != nullptr;
    report_stale(object, call);
    return false;
}
template <class T>
inline void begin_use(T &object)
{
    object.watch.alive.store(true, std::memory_order_relaxed);
}
/// The handle was closed.
template <class T>
inline void mark_closed(T &object)
{
    object.watch.alive.store(false, std::memory_order_relaxed);
}
/// Frees the memory only after 256 others, so that a use after close is recognized.
void free_late(void *memory);
/// Frees an object of rte_malloc().
template <class T>
inline void end_use(T *object)
{
    mark_closed(*object);
    free_late(object);
}
template <class T>
inline Watch *watch_of(T &object)
{
    return &object.watch;
}

#else

struct Watch {
};
class Using
{
public:
    Using(Watch *, const char *, const char *) {}
    void leave() const {}
};
inline bool is_inside(const Watch *)
{
    return false;
}
template <class T>
inline bool is_live(const T *object, const char *)
{
    return object != nullptr;
}
template <class T>
inline void begin_use(T &)
{
}
template <class T>
inline void mark_closed(T &)
{
}
template <class T>
inline void end_use(T *object)
{
    rte_free(object);
}
template <class T>
inline Watch *watch_of(T &)
{
    return nullptr;
}

#endif

} // namespace ntbmsg

#endif
