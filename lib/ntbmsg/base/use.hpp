// SPDX-License-Identifier: BSD-3-Clause
// How callers use objects, watched where the build has checks (meson option `checks`): one thread
// at a time is inside, and nobody comes with a handle that was given back. In other builds a watch
// has no bytes and no instruction.
#ifndef NTBMSG_BASE_USE_HPP
#define NTBMSG_BASE_USE_HPP

#include <atomic>
#include <cstdint>

#include <rte_malloc.h>

namespace ntbmsg
{

#ifdef NTBMSG_CHECKS

/// Of an object. All zeros: not alive. Relaxed throughout, so that watching orders nothing that is
/// not ordered without it.
struct Watch {
    std::atomic<bool> alive;
    std::atomic<int> thread;        ///< inside; 0: none
    std::atomic<const char *> call; ///< in which it is
};

/// A thread is inside for its life. A second one, that is not called by it, ends the process.
class Using
{
public:
    /// @param watch  NULL: any number of threads may be inside
    Using(Watch *watch, const char *object, const char *call);
    ~Using() { leave(); }
    Using(const Using &) = delete;
    Using &operator=(const Using &) = delete;
    /// Before somebody else may have the object.
    void leave();

private:
    Watch *watch_; ///< NULL: nothing to be left
};

/// The caller's thread is inside.
bool is_inside(const Watch *watch);

/// One line: a handle was used that had been given back.
void report_stale(const void *handle, const char *call);

/// @p object is a handle that was not given back.
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
/// The handle was given back.
template <class T>
inline void mark_closed(T &object)
{
    object.watch.alive.store(false, std::memory_order_relaxed);
}
/// Frees the memory when many others have been freed, so that who comes with it is known.
void free_late(void *memory);
/// The end of an object of rte_malloc().
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
