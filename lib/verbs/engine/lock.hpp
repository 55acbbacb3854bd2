// SPDX-License-Identifier: BSD-3-Clause
// The lock of an engine. A thread that alone calls it again and again becomes its owner, and enters
// without a locked instruction; whoever else comes pays for both with membarrier(2).
#ifndef NTB_VERBS_ENGINE_LOCK_HPP
#define NTB_VERBS_ENGINE_LOCK_HPP

#include <atomic>
#include <cstdint>

#include <pthread.h>

#if defined(__SANITIZE_THREAD__)
#define NTB_VERBS_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NTB_VERBS_THREAD_SANITIZER 1
#endif
#endif

namespace ntb::verbs
{

/// The number of the calling thread, which no other one has as long as it lives. Not 0.
inline std::uintptr_t this_thread()
{
#if __has_builtin(__builtin_thread_pointer) // by one load
    return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
#else
    return static_cast<std::uintptr_t>(pthread_self());
#endif
}

/// What the lock asks of the kernel; tests replace it.
struct Kernel {
    /// Process-wide set-up of the barrier. @retval false there is none
    static bool prepare();
    /// Makes every running thread of the process pass a full barrier.
    static void barrier();
    /// Sleeps while the word has that value; may end early.
    static void wait(std::atomic<std::uint32_t> &word, std::uint32_t value);
    static void wake(std::atomic<std::uint32_t> &word);
};

/// For visitors a mutex, and for the calls of a program. Not recursive.
template <typename Memory>
class BasicLock
{
public:
    /// Of a thread that is the owner, or was.
    class Seat
    {
        friend BasicLock;
        std::uintptr_t thread_ = 0; // set once; a later thread may have the same number
        // Stored by that thread alone, for ever: one that is interrupted between its look at the
        // owner and its store does not spoil what the next owner says.
        std::atomic<std::uint32_t> inside_{0};
    };

    /// Calls of one thread, with no other in between, that make it the owner.
    static constexpr std::uint32_t calls_of_an_owner = 256;
    /// Threads that can ever own one lock. Others take the mutex.
    static constexpr std::uint32_t most_owners = 4;

    BasicLock() = default;
    ~BasicLock() { pthread_mutex_destroy(&mutex_); }
    BasicLock(const BasicLock &) = delete;
    BasicLock &operator=(const BasicLock &) = delete;

    /// From now on there may be an owner, if the kernel can help. Called once, by the first who
    /// knows of the lock.
    void prepare() { may_be_owned_ = Memory::prepare(); }

    /// Of a visitor, who does not become the owner.
    void lock()
    {
        pthread_mutex_lock(&mutex_);
        Seat *const owner = owner_.load(std::memory_order_relaxed);
        if (owner && owner->thread_ != this_thread())
            revoke(*owner);
        calls_ = 0;
    }
    void unlock() { pthread_mutex_unlock(&mutex_); }

    /// Of a call. @return for leave()
    Seat *enter()
    {
        Seat *const seat = own_seat();
        if (seat) [[likely]] {
            if (sit(*seat)) [[likely]]
                return seat;
            leave(seat);
        }
        enter_slowly();
        return nullptr;
    }
    /// The steps of enter() that call nothing, for calls that call nothing either. NULL: the thread
    /// is not the owner.
    Seat *own_seat() const
    {
        Seat *const seat = owner_.load(order(std::memory_order_acquire));
        if (!seat || seat->thread_ != this_thread()) [[unlikely]]
            return nullptr;
        return seat;
    }
    /// @retval false it is not the owner any more, and has to leave()
    bool sit(Seat &seat)
    {
        // Store, then load, which x86 does not keep in order by itself. The barrier of revoke()
        // makes up for it: either this thread sees that it is not the owner any more, or the
        // other one sees it inside.
        seat.inside_.store(1, order(std::memory_order_relaxed));
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return owner_.load(order(std::memory_order_acquire)) == &seat;
    }
    /// Of leave(). @retval false somebody waits: wake() follows
    bool stand_up(Seat &seat)
    {
        // The same store and load as of sit(), and the same barrier: either the other one sees that
        // none is inside, or this thread sees that somebody waits.
        seat.inside_.store(0, order(std::memory_order_release)); // pairs with revoke()
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return owner_.load(order(std::memory_order_relaxed)) == &seat;
    }
    static void wake(Seat &seat) { Memory::wake(seat.inside_); }
    void leave(Seat *seat)
    {
        if (!seat)
            unlock();
        else if (!stand_up(*seat)) [[unlikely]]
            wake(*seat);
    }

private:
    static constexpr std::memory_order order([[maybe_unused]] std::memory_order otherwise)
    {
#if defined(NTB_VERBS_THREAD_SANITIZER)
        return std::memory_order_seq_cst; // it does not know membarrier
#else
        return otherwise;
#endif
    }

    // Under the mutex. An owner that enters from now on finds that it is none.
    void revoke(Seat &seat)
    {
        owner_.store(nullptr, std::memory_order_seq_cst);
        Memory::barrier();
        while (seat.inside_.load(order(std::memory_order_acquire)) != 0)
            Memory::wait(seat.inside_, 1);
    }

    [[gnu::noinline]] void enter_slowly()
    {
        pthread_mutex_lock(&mutex_);
        const std::uintptr_t self = this_thread();
        Seat *const owner = owner_.load(std::memory_order_relaxed);
        if (owner)
            revoke(*owner);
        if (owner || caller_ != self)
            calls_ = 0;
        caller_ = self;
        if (++calls_ >= calls_of_an_owner && may_be_owned_)
            owner_.store(seat_of(self), std::memory_order_release); // what it has seen in the mutex
    }

    // @return NULL: all are taken by others
    Seat *seat_of(pthread_t thread)
    {
        std::uint32_t i = 0;
        while (i < n_seats_ && seats_[i].thread_ != thread)
            ++i;
        if (i == most_owners)
            return nullptr;
        if (i == n_seats_)
            seats_[n_seats_++].thread_ = thread;
        return &seats_[i];
    }

    std::atomic<Seat *> owner_{nullptr}; // stored under the mutex
    Seat seats_[most_owners];
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    std::uint32_t n_seats_ = 0;
    std::uint32_t calls_ = 0; // of `caller_`, in a row
    std::uintptr_t caller_ = 0;
    bool may_be_owned_ = false;
};

using Lock = BasicLock<Kernel>;

/// Holds a lock for its own life, as a visitor.
template <typename Memory>
class Visit
{
public:
    explicit Visit(BasicLock<Memory> &lock) : lock_(lock) { lock_.lock(); }
    ~Visit() { lock_.unlock(); }
    Visit(const Visit &) = delete;
    Visit &operator=(const Visit &) = delete;

private:
    BasicLock<Memory> &lock_;
};

/// The same of a call that a program makes all the time.
template <typename Memory>
class Call
{
public:
    explicit Call(BasicLock<Memory> &lock) : lock_(lock), seat_(lock.enter()) {}
    ~Call() { lock_.leave(seat_); }
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

private:
    BasicLock<Memory> &lock_;
    typename BasicLock<Memory>::Seat *const seat_;
};

} // namespace ntb::verbs

#endif
