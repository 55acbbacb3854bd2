// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_TABLE_TABLE_HPP
#define NTB_SOCKET_TABLE_TABLE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernel/threads.hpp"

namespace ntb::socket
{

/// What one or several descriptors of this process stand for, where the library has to do with it.
/// The table never unmaps it, so whoever still holds a pointer reads an object, if perhaps another.
struct Object {
    enum class Kind : std::uint8_t { Connection, Set };

    Kind kind;
    /// SO_COOKIE of a connection: whether a number still stands for the same socket.
    std::uint64_t cookie;
    /// What the users of the table make of it; NULL at first.
    std::atomic<void *> body;

private:
    friend class Table;
    std::atomic<std::uint32_t> names;    ///< descriptors of this process
    std::atomic<std::uint32_t> users;    ///< calls that are at work with it
    std::atomic<std::uint32_t> sleepers; ///< of these, those that sleep
    std::uint32_t next;                  ///< of the free ones
};

/// The descriptors of this process that stand for something of the library's, and those that the
/// library has opened for itself (hidden ones). Any thread, and signal handlers: nothing is
/// allocated, no lock is waited for.
///
/// A number may be closed and used again unseen, by a system call that does not pass libc. So every
/// new descriptor that is seen is reported with born(), and before a long sleep the cookie is
/// compared.
class Table
{
public:
    /// @param descriptors  numbers below this are kept; others are never found
    /// @param objects      how many there may be at a time
    /// @param over         called for an object whose last descriptor went while calls were at work
    ///                     with it, by the last of these; it calls end()
    /// @return false: no memory; the table stays empty
    bool make(std::size_t descriptors, std::uint32_t objects, void (*over)(Object *));
    void unmake();

    /// One load where there is nothing. The pointer is good for use() and for comparing.
    Object *find(int fd) const
    {
        return static_cast<unsigned>(fd) < size_ ? slots_[fd].load(std::memory_order_acquire)
                                                 : nullptr;
    }
    /// As find(), and the object does not end before done().
    Object *use(int fd)
    {
        Object *object = find(fd);
        return object == nullptr ? nullptr : use(object, fd);
    }
    /// @param found  what find() said of it just now
    Object *use(Object *found, int fd)
    {
        kernel::add(found->users);
        if (slots_[fd].load(std::memory_order_seq_cst) == found) [[likely]]
            return found;
        return use_another(found, fd);
    }
    void done(Object *object)
    {
        if (leave(object)) [[unlikely]]
            over_(object);
    }
    /// As done(), but where it was the last use of an object without descriptors, the caller ends
    /// it.
    bool leave(Object *object)
    {
        // The mark is looked for behind the count: pairs with take(), which sets it and then looks
        // at the count. One of both finds what the other one has done.
        if (kernel::subtract(object->users) != 1 || object->names.load() != ending) [[likely]]
            return false;
        std::uint32_t waiting = ending;
        return object->names.compare_exchange_strong(waiting, 0);
    }
    /// Whether calls are at work with it.
    static bool is_used(const Object &object) { return object.users.load() != 0; }
    /// Users that do not sleep.
    static std::uint32_t awake(const Object &object)
    {
        const std::uint32_t users = object.users.load(), sleepers = object.sleepers.load();
        return users > sleepers ? users - sleepers : 0;
    }
    static bool has_sleepers(const Object &object) { return object.sleepers.load() != 0; }
    /// A use of an object that is perhaps over: its body says so. Given back by done().
    static void touch(Object &object) { kernel::add(object.users); }
    /// A use of it sleeps, until wake().
    static void sleep(Object &object) { kernel::add(object.sleepers); }
    static void wake(Object &object) { kernel::subtract(object.sleepers); }
    std::uint32_t index(const Object &object) const
    {
        return static_cast<std::uint32_t>(&object - objects_);
    }
    /// @return a number that stands for it, or -1
    int number_of(const Object *object) const;

    /// A new object for a descriptor, used by the caller until done(). @return NULL: no room
    Object *add(int fd, Object::Kind kind, std::uint64_t cookie);
    /// `to` stands for what `from` does, if that is anything: dup() and its kin. What `to` stood
    /// for has to be taken before.
    void copy(int from, int to);

    struct Taken {
        Object *object; ///< NULL: there was none
        bool last;      ///< no descriptor is left here ...
        bool over;      ///< ... and no call is at work with it: the caller calls end()
    };
    /// The descriptor ends, or stands for something else.
    Taken take(int fd);
    /// As take(), where it still stands for that.
    Taken take(int fd, Object *object);
    /// The object may be used again for another one.
    void end(Object *object);

    /// A descriptor of the library's own: closing it is to be refused.
    void hide(int fd);
    void show(int fd);
    bool hidden(int fd) const
    {
        return static_cast<unsigned>(fd) < size_ &&
               (hidden_[fd / 64].load(std::memory_order_relaxed) >> (fd % 64) & 1) != 0;
    }
    /// It may be a member of a set that does not know it: it became one while it stood for nothing,
    /// or stands for nothing since.
    void note_added(int fd);
    void forget_added(int fd);
    bool was_added(int fd) const
    {
        return static_cast<unsigned>(fd) < size_ &&
               (added_[fd / 64].load(std::memory_order_relaxed) >> (fd % 64) & 1) != 0;
    }
    /// @return the first hidden number from `from` to `to`, or -1
    int next_hidden(unsigned from, unsigned to) const;
    /// @return the first number from `from` to `to` that stands for something, or -1
    int next(unsigned from, unsigned to) const;

    /// In the child of a fork: calls of other threads are not at work here.
    void forked();
    /// Behind forked(): ends what had no descriptor any more, and was kept by such calls.
    void end_left();

private:
    static constexpr std::uint32_t none = 0;
    /// Set in `names` while the object waits for its last user.
    static constexpr std::uint32_t ending = 1u << 31;

    Object *use_another(Object *object, int fd);

    std::size_t size_ = 0; ///< of slots_, in numbers
    std::uint32_t count_ = 0;
    std::atomic<Object *> *slots_ = nullptr;
    std::atomic<std::uint64_t> *hidden_ = nullptr;
    std::atomic<std::uint64_t> *added_ = nullptr;
    Object *objects_ = nullptr;
    void (*over_)(Object *) = nullptr;
    /// First free object, plus 1, and above it a number that changes with each take.
    std::atomic<std::uint64_t> free_ = 0;
    std::atomic<std::uint32_t> fresh_ = 0;   ///< objects that were never used begin here
    std::atomic<std::uint32_t> highest_ = 0; ///< number that ever stood for something
};

} // namespace ntb::socket

#endif
