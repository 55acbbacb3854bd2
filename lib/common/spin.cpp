// SPDX-License-Identifier: BSD-3-Clause
#include "spin.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ntb
{

namespace
{

constexpr std::uint32_t kernel_laps = 16;
constexpr std::uint32_t least_us = 1;
constexpr std::uint64_t another_ns = 700; // beyond what a yield takes by itself
// A lap takes a microsecond or so: in a longer one others had taken the processor.
constexpr std::uint64_t taken_ns = 50000;
constexpr std::uint64_t rest_factor = 32; // so 3 % are lost at most
// Where others needed the processor twice in a row. Giving way counts as a turn had, and until that
// is made up for a wake-up displaces no other: that costs more than the time that the others ran.
constexpr std::uint64_t least_rest_ns = 10000000;
constexpr std::uint64_t most_rest_ns = 320000000;

std::atomic<std::uint32_t> spinners_here;

std::uint64_t monotonic_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint32_t processors_here()
{
    unsigned long mask[1024 / sizeof(unsigned long)] = {};
    const int before = errno; // of a program that does not know of this call
    const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    errno = before;
    std::uint32_t n = 0;
    for (long i = 0; i * static_cast<long>(sizeof mask[0]) < bytes; i++)
        n += static_cast<std::uint32_t>(__builtin_popcountl(mask[i]));
    return std::max(n, 1u);
}

std::uint64_t tick_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

// A virtual machine whose kernel hides its page tables takes 1 us for a system call, another one a
// tenth of that. Not sched_yield() itself: it takes long where others run.
std::uint32_t measure_yield()
{
    constexpr int calls = 16;
    constexpr std::uint64_t beyond_the_call_ns = 130;
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < calls; i++) {
        const std::uint64_t before = monotonic_ns();
        syscall(SYS_getppid); // never fails
        least = std::min(least, monotonic_ns() - before);
    }
    return static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(least + beyond_the_call_ns, Spinning::usual_yield_ns, 10000));
}

// Of switches that the thread did not sleep in: its processor was taken, or a yield found another.
bool was_displaced()
{
    [[gnu::tls_model("initial-exec")]] static thread_local long known;
    rusage usage;
    const int before = errno;
    if (getrusage(RUSAGE_THREAD, &usage) != 0) { // refused by a sandbox
        errno = before;
        return true;
    }
    const bool is = usage.ru_nivcsw != known;
    known = usage.ru_nivcsw;
    return is;
}

void give_processor()
{
    sched_yield(); // never fails
}

} // namespace

Spinning &process_spinning()
{
    static Spinning spinning = [] {
        Spinning made = {
            .processors = processors_here(),
            .spinners = &spinners_here,
            .now_ns = monotonic_ns,
            .yield = give_processor,
            .yield_ns = measure_yield(),
            .tick_ns = tick_ns,
            .was_displaced = was_displaced,
        };
        made.kernel_every = kernel_laps * made.dear();
        return made;
    }();
    return spinning;
}

void SpinTime::waited(std::uint64_t ns, std::uint32_t most_us)
{
    const std::uint32_t now = us();
    const std::uint64_t took = ns / 1000;
    const std::uint64_t wanted = took > most_us ? now / 2 : std::max<std::uint64_t>(now, 2 * took);
    us_.store(static_cast<std::uint32_t>(
                  std::clamp<std::uint64_t>(wanted, least_us, std::max(most_us, least_us))),
              std::memory_order_relaxed);
}

void forget_spinners_after_fork()
{
    spinners_here.store(0, std::memory_order_relaxed);
}

bool Spin::begin(std::uint64_t now)
{
    if (spinning_.most_us == 0 || spin_time_.rests(now))
        return false;
    if (spinning_.spinners->fetch_add(1, std::memory_order_relaxed) >= spinning_.processors) {
        spinning_.spinners->fetch_sub(1, std::memory_order_relaxed);
        return false;
    }
    spins_ = true;
    began_ = now;
    until_ = now + std::uint64_t{std::min(spin_time_.us(), spinning_.most_us)} * 1000;
    return true;
}

bool Spin::goes_on()
{
    if (stopped_)
        return false;
    notice(spinning_.now_ns());
    if (others_need_it() || (others_ns_ != 0 && spinning_.answers_here)) {
        rest();
        stop();
        return false;
    }
    if ((!spins_ && !begin(looked_)) || looked_ >= until_) {
        stop();
        return false;
    }
    return true;
}

/// Where the processor was taken away in the last lap, others need it, too.
void Spin::notice(std::uint64_t now)
{
    if (spins_ && now >= looked_ + taken_ns && others_ran())
        others_ns_ += now - looked_;
    if (now > looked_)
        looked_ = now;
}

void Spin::give_way()
{
    spinning_.yield();
    const std::uint64_t now = spinning_.now_ns();
    if (now - looked_ >= spinning_.yield_ns + another_ns && others_ran()) {
        others_ns_ += now - looked_;
        if (!spinning_.answers_here) {
            again_ = spin_time_.shares();
            spin_time_.share(true);
        }
    } else {
        others_ns_ = 0;
        again_ = false;
        spin_time_.share(false);
    }
    looked_ = now;
}

bool Spin::others_need_it() const
{
    return again_ || others_ns_ > std::uint64_t{spinning_.most_us} * 1000;
}

// Others need the processor. Who is asleep gets it at once when woken, and that is soon done where
// it is not idle; who gives way gets it when the other one's time is over.
void Spin::rest()
{
    std::uint64_t ns = rest_factor * others_ns_;
    if (again_)
        ns =
            std::max({ns, least_rest_ns, std::min(spin_time_.next_rest_ns(looked_), most_rest_ns)});
    spin_time_.rest(looked_, ns);
    spin_time_.share(false);
}

void Spin::stop()
{
    stopped_ = true;
    others_ns_ = 0;
    again_ = false;
    if (!spins_)
        return;
    spins_ = false;
    spinning_.spinners->fetch_sub(1, std::memory_order_relaxed);
}

Spin::~Spin()
{
    if (began_ == 0)
        return;
    // What has come ended the lap: the last tick says whether that took long.
    if (spins_)
        notice(spinning_.tick_ns != nullptr ? spinning_.tick_ns() : spinning_.now_ns());
    if (others_need_it())
        rest();
    else if (others_ns_ != 0)
        spin_time_.share(true);
    spin_time_.waited((spins_ ? looked_ : spinning_.now_ns()) - began_, spinning_.most_us);
    stop();
}

} // namespace ntb
