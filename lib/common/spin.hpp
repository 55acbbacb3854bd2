// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_COMMON_SPIN_HPP
#define NTB_COMMON_SPIN_HPP

#include <atomic>
#include <cstdint>

namespace ntb
{

/// What the waiters of a process share, and what tests replace.
struct Spinning {
    /// The longest spin time; 0: no thread spins.
    std::uint32_t most_us = 200;
    /// More waiters than this never spin at a time.
    std::uint32_t processors = 1;
    /// Those that spin now; perhaps in memory that other processes share.
    std::atomic<std::uint32_t> *spinners;
    /// Any monotonic clock.
    std::uint64_t (*now_ns)();
    /// Lets others run that wait for this processor.
    void (*yield)();
    /// A waiter asks the kernel too at least once in so many looks.
    std::uint32_t kernel_every = 16;
    /// Whether who answers sleeps when it waits, so that this processor may be handed to and fro.
    /// Otherwise who runs here twice in a row needs it, whatever has come meanwhile.
    bool answers_here = true;
    /// What yield() takes where no other thread wants the processor: longer ones say that others
    /// ran.
    std::uint32_t yield_ns = usual_yield_ns;

    /// The same clock as of the last tick, for the price of a load. NULL: now_ns
    std::uint64_t (*tick_ns)() = nullptr;
    /// Whether another thread has had this thread's processor since the last call; a system call,
    /// made where time says so. NULL: time alone decides
    bool (*was_displaced)() = nullptr;

    static constexpr std::uint32_t usual_yield_ns = 300;
    /// How many times as dear a system call is as on the machines that the laps were chosen on.
    std::uint32_t dear() const { return yield_ns > usual_yield_ns ? yield_ns / usual_yield_ns : 1; }
};

/// The process's: as many processors as it may use, its own counter of spinners. What a system call
/// takes is measured by the first call, which makes some that any program may make.
Spinning &process_spinning();

/// How long one set, or one thread that waits for single descriptors, looks before it sleeps: twice
/// as long as a short wait took, half as long after each long one (decision 030). What is learned
/// from is the wait as a whole, slept or not.
class SpinTime
{
public:
    std::uint32_t us() const { return us_.load(std::memory_order_relaxed); }
    /// A wait took so long. @param most_us  longer ones are not worth a look
    void waited(std::uint64_t ns, std::uint32_t most_us);

    /// Others need the processor: no thread looks for so long.
    void rest(std::uint64_t now_ns, std::uint64_t ns)
    {
        rests_.store(now_ns + ns, std::memory_order_relaxed);
        rest_ns_.store(ns, std::memory_order_relaxed);
    }
    /// Twice the last rest, if the time since that one was shorter than it.
    std::uint64_t next_rest_ns(std::uint64_t now_ns) const
    {
        const std::uint64_t last = rest_ns_.load(std::memory_order_relaxed);
        return now_ns < rests_.load(std::memory_order_relaxed) + last ? 2 * last : 0;
    }
    bool rests(std::uint64_t now_ns) const
    {
        return now_ns < rests_.load(std::memory_order_relaxed);
    }
    /// Whether who answers runs on the same processor, and only while it is given away.
    bool shares() const { return shares_.load(std::memory_order_relaxed); }
    void share(bool shares)
    {
        if (this->shares() != shares)
            shares_.store(shares, std::memory_order_relaxed);
    }

private:
    // Threads of one set share them.
    std::atomic<std::uint32_t> us_ = 20;
    std::atomic<bool> shares_ = false;
    std::atomic<std::uint64_t> rests_ = 0; ///< until then
    std::atomic<std::uint64_t> rest_ns_ = 0;
};

/// In a child: the parent's threads that spin are not there.
void forget_spinners_after_fork();

/// One wait: it lasts as long as this lives.
class Spin
{
public:
    Spin(const Spinning &spinning, SpinTime &spin_time) : spinning_(spinning), spin_time_(spin_time)
    {
    }
    ~Spin();

    Spin(const Spin &) = delete;
    Spin &operator=(const Spin &) = delete;

    /// Pauses, or lets others run. @retval false the spin time is over, or no thread is to spin
    bool lap()
    {
        return lap([] { return false; });
    }
    /// @param has_news  whether the pause is to end
    template <typename News>
    bool lap(News has_news)
    {
        if (!goes_on())
            return false;
        if (spin_time_.shares() || ++laps_ % (yield_laps * spinning_.dear()) == 0) {
            give_way();
            return true;
        }
        for (std::uint32_t i = 0; i < pauses && !has_news(); i++)
            pause();
        return true;
    }
    /// No lap any more: the wait goes on asleep.
    void stop();

private:
    static constexpr std::uint32_t pauses = 8; ///< of a lap: about 0.15 us
    /// Others get to run each microsecond or so, or more seldom where giving way takes longer.
    static constexpr std::uint32_t yield_laps = 8;

    static void pause()
    {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    bool goes_on();
    void notice(std::uint64_t now);
    bool begin(std::uint64_t now);
    void give_way();
    bool others_need_it() const;
    /// Whether others had the processor, in a lap or yield that took long: the host of a virtual
    /// machine, an interrupt or a slow system call takes time, too.
    bool others_ran() const
    {
        return spinning_.was_displaced == nullptr || spinning_.was_displaced();
    }
    void rest();

    const Spinning &spinning_;
    SpinTime &spin_time_;
    std::uint64_t began_ = 0; ///< 0: it did not spin, and learns nothing
    std::uint64_t until_ = 0;
    std::uint64_t looked_ = 0; ///< when, at last
    std::uint32_t laps_ = 0;
    bool spins_ = false;
    bool stopped_ = false;
    std::uint64_t others_ns_ = 0; ///< how long others ran in the last lap, or laps in a row
    bool again_ = false;          ///< they had run the time before, and answers come from elsewhere
};

} // namespace ntb

#endif
