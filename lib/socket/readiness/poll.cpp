// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/poll.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <linux/futex.h>
#include <sys/epoll.h>

#include "kernel/memory.hpp"
#include "kernel/system.hpp"
#include "readiness/deadline.hpp"
#include "readiness/event_masks.hpp"
#include "readiness/handlers.hpp"
#include "readiness/ways.hpp"
#include "spin.hpp"

namespace ntb::socket
{

namespace
{

static_assert(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT && POLLPRI == EPOLLPRI &&
              POLLERR == EPOLLERR && POLLHUP == EPOLLHUP && POLLRDNORM == EPOLLRDNORM &&
              POLLWRNORM == EPOLLWRNORM);

// How late a waiter may learn what does not come by ring: an end that was not said, or a daemon's.
constexpr std::uint64_t longest_doze_ns = 10000000;

// Of one that has ended, the shadow has nothing to say that its daemon does not ring for.
constexpr short shadow_events = POLLIN | POLLOUT | POLLPRI | static_cast<short>(EPOLLRDHUP);

long kernel_poll(pollfd *entries, nfds_t n, const Deadline &deadline, const sigset_t *mask)
{
    timespec room;
    timespec *left = nullptr;
    if (!deadline.never()) {
        deadline.left(room);
        left = &room;
    }
    return kernel::call(SYS_ppoll, entries, n, left, mask, 8);
}

// A wait of the kernel's, for as long as no handler has run (rule W9). @param before  handled(),
// before a look
template <typename Wait>
long until_handled(const Deadline &deadline, const Handled &before, Wait wait)
{
    timespec &time = sleep_time();
    deadline.set(time);
    // A handler that runs before this is counted; one that runs behind it leaves no time to sleep.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    long result = -EINTR;
    if (handled().all == before.all)
        result = wait(time);
    time = {};
    return result;
}

long kernel_sleep(pollfd *entries, nfds_t n, const Deadline &deadline, const sigset_t *mask,
                  const Handled &before)
{
    const long result = until_handled(deadline, before, [=](timespec &time) {
        return kernel::call(SYS_ppoll, entries, n, &time, mask, 8);
    });
    return result == 0 && handled().all != before.all ? -EINTR : result;
}

// Of a process that may not have as many descriptors open as there are to wait for.
long sleep_for_a_while(const Deadline &deadline, const Handled &before)
{
    constexpr std::uint64_t while_ns = 1000000;
    const long result = until_handled(deadline.sooner(while_ns), before, [](timespec &time) {
        return kernel::call(SYS_nanosleep, &time, nullptr);
    });
    return result == 0 && handled().all != before.all ? -EINTR : result;
}

long kernel_poll_now(pollfd *entries, nfds_t n)
{
    timespec nothing = {};
    return kernel::call(SYS_ppoll, entries, n, &nothing, nullptr, 8);
}

// RDNORM and WRNORM are shown with IN and OUT, as the kernel does for sockets.
std::uint32_t widened(std::uint32_t events)
{
    return events | ((events & EPOLLIN) ? EPOLLRDNORM : 0u) |
           ((events & EPOLLOUT) ? EPOLLWRNORM : 0u);
}

std::uint32_t arm_events(std::uint32_t events)
{
    return ((events & in_events) ? EPOLLIN : 0u) | ((events & out_events) ? EPOLLOUT : 0u);
}

/// One call's entries, and what it asks the kernel for them: the program's own without a source
/// first, then shadows, then bells, then the attendant's.
class Waiter
{
public:
    Waiter(pollfd *entries, nfds_t n, Source *const *sources, Attendant *attendant, pollfd *asked)
        : entries_(entries), n_(n), sources_(sources), attendant_(attendant), asked_(asked)
    {
        find_native();
    }

    /// Looks at the sources. @return entries with events
    int look();
    /// Asks the kernel, of shadows what changes their connection. @return as look(), over all
    int ask();
    bool has_native() const { return has_native_; }
    /// Whether a look may find more than the last one.
    bool has_news() const { return signs() != signs_; }
    /// Whether a look can be spared until there are news.
    bool has_signs() const { return signs_ != 0; }
    int sleep(const Deadline &deadline, const sigset_t *mask, const Handled &before);
    /// A short sleep of who waits for one thing of one source: on a word in the memory, where that
    /// says all but what can wait for so long. @return as sleep()
    int doze(const Deadline &deadline, const Handled &before);
    bool may_doze(const Deadline &deadline) const
    {
        return n_ == 1 && (wanted(0) == EPOLLIN || wanted(0) == EPOLLOUT) && source(0) != nullptr &&
               entries_[0].fd >= 0 && deadline.within(longest_doze_ns);
    }

private:
    void find_native();
    std::uint64_t signs() const;
    void set_asked();
    int take_answers();
    bool wants_room() const;
    bool is_in_doubt() const;
    Source *source(nfds_t i) const
    {
        return sources_[i] != nullptr && sources_[i]->upgraded() ? sources_[i] : nullptr;
    }
    std::uint32_t wanted(nfds_t i) const { return static_cast<std::uint16_t>(entries_[i].events); }
    void disarm();

    pollfd *entries_;
    nfds_t n_;
    Source *const *sources_;
    Attendant *attendant_;
    pollfd *asked_; ///< 2 n + 1: for entry i at i itself or its shadow; its bell at n + i
    bool has_native_ = false;
    bool asked_now_ = false;  ///< asked_ has the answers of ask(), and nothing was looked at since
    bool asks_first_ = false; ///< a sleep was ended by what changed nothing
    nfds_t armed_ = 0;        ///< entries below it are
    std::uint64_t signs_ = 0; ///< before the last look
};

void Waiter::find_native()
{
    has_native_ = false;
    for (nfds_t i = 0; i < n_; i++)
        has_native_ |= source(i) == nullptr && entries_[i].fd >= 0;
}

/// One number for all sources, each of which grows.
std::uint64_t Waiter::signs() const
{
    std::uint64_t sum = 0;
    for (nfds_t i = 0; i < n_; i++) {
        if (sources_[i] == nullptr || entries_[i].fd < 0)
            continue;
        const std::uint64_t one = sources_[i]->signs(arm_events(wanted(i)));
        if (one == 0)
            return 0;
        sum += one;
    }
    return sum;
}

int Waiter::look()
{
    asked_now_ = false;
    signs_ = signs();
    int n = 0;
    for (nfds_t i = 0; i < n_; i++) {
        Source *const at = source(i);
        if (entries_[i].fd < 0)
            entries_[i].revents = 0;
        if (at == nullptr || entries_[i].fd < 0)
            continue;
        const std::uint32_t now = widened(at->look(arm_events(wanted(i)))) & (wanted(i) | always);
        entries_[i].revents = static_cast<short>(now);
        n += now != 0;
    }
    return n;
}

void Waiter::set_asked()
{
    find_native();
    for (nfds_t i = 0; i < n_; i++) {
        const Source *const at = source(i);
        asked_[i] = {at != nullptr && entries_[i].fd >= 0 ? at->shadow() : entries_[i].fd,
                     at != nullptr ? shadow_events : entries_[i].events, 0};
    }
}

int Waiter::ask()
{
    set_asked();
    const long answered = kernel_poll_now(asked_, n_);
    if (answered < 0)
        return static_cast<int>(answered);
    const int n = take_answers();
    asked_now_ = true;
    return n;
}

/// What the kernel said of the entries. @return as look(), over all
int Waiter::take_answers()
{
    for (nfds_t i = 0; i < n_; i++) {
        // OUT of the shadow is asked for when it is needed.
        const auto said = static_cast<std::uint16_t>(asked_[i].revents);
        if (Source *const at = source(i);
            at != nullptr && entries_[i].fd >= 0 && (said & ~std::uint32_t{EPOLLOUT}) != 0)
            at->kernel_said(said);
    }
    signs_ = signs(); // what was just said is no news
    int n = 0;
    for (nfds_t i = 0; i < n_; i++) {
        Source *const at = source(i);
        std::uint32_t now = static_cast<std::uint16_t>(asked_[i].revents);
        if (at != nullptr && entries_[i].fd >= 0) {
            now = widened(at->look(arm_events(wanted(i)))) & (wanted(i) | always);
        } else {
            now &= wanted(i) | always | POLLNVAL;
        }
        entries_[i].revents = static_cast<short>(now);
        n += now != 0;
    }
    return n;
}

/// Where no thread waits for room, what the shadow says of it is no reason to wake up.
bool Waiter::wants_room() const
{
    for (nfds_t i = 0; i < n_; i++)
        if (source(i) != nullptr && (wanted(i) & out_events) != 0)
            return true;
    return false;
}

bool Waiter::is_in_doubt() const
{
    for (nfds_t i = 0; i < n_; i++)
        if (source(i) != nullptr && (wanted(i) & out_events) != 0 && source(i)->is_in_doubt())
            return true;
    return false;
}

void Waiter::disarm()
{
    // Those that were armed: a source that went back meanwhile is one of them.
    while (armed_ > 0) {
        armed_--;
        if (const pollfd &bell = asked_[n_ + armed_]; bell.fd >= 0)
            sources_[armed_]->disarm(arm_events(wanted(armed_)), bell.revents != 0);
    }
}

/// @return entries with events; 0: none, look on; -EINTR and other errors
int Waiter::sleep(const Deadline &deadline, const sigset_t *mask, const Handled &before)
{
    // What the shadow shows already is no reason to wake up again: asked_ has the answers of ask().
    // Where no thread has asked, the sleep does: it ends by what is there, or goes on asleep.
    if (!asked_now_ && (asks_first_ || wants_room())) {
        if (const int there = ask(); there != 0)
            return there;
    } else if (!asked_now_) {
        set_asked();
        for (nfds_t i = 0; i < n_; i++)
            if (source(i) != nullptr)
                asked_[i].revents = POLLOUT;
    }
    for (nfds_t i = 0; i < n_; i++) {
        Source *const at = source(i);
        asked_[n_ + i] = {-1, 0, 0};
        armed_ = i + 1;
        if (at == nullptr || entries_[i].fd < 0)
            continue;
        asked_[n_ + i] = {at->bell(), POLLIN, 0};
        const auto shown = static_cast<std::uint16_t>(asked_[i].revents);
        if (shown & always)
            asked_[i].fd = -1;
        asked_[i].events = static_cast<short>(asked_[i].events & ~shown);
        at->arm(arm_events(wanted(i)));
    }
    const int there = look();
    if (there > 0) {
        disarm();
        return there;
    }
    asked_[2 * n_] = {attendant_ != nullptr ? attendant_->descriptor() : -1, POLLIN, 0};
    long n = kernel_sleep(asked_, 2 * n_ + 1,
                          is_in_doubt() ? deadline.sooner(Source::longest_doubt_ns) : deadline,
                          mask, before);
    if (n == -EINVAL)
        n = sleep_for_a_while(deadline, before);
    // Bells are read before the next look (rule W4).
    disarm();
    if (n <= 0)
        return static_cast<int>(n);
    if (asked_[2 * n_].revents != 0)
        attendant_->process();
    const int found = take_answers();
    asks_first_ = found == 0;
    return found;
}

int Waiter::doze(const Deadline &deadline, const Handled &before)
{
    const std::uint32_t event = wanted(0);
    std::uint32_t value = 0;
    const std::uint32_t *const word = sources_[0]->doze(event, value);
    if (word == nullptr)
        return sleep(deadline, nullptr, before);
    int n = look();
    if (n == 0) {
        const long woken = until_handled(deadline, before, [=](timespec &time) {
            return kernel::call(SYS_futex, word, FUTEX_WAIT, value, &time, nullptr, 0);
        });
        if (woken == -EINTR || (woken == -ETIMEDOUT && handled().all != before.all))
            n = -EINTR;
    }
    sources_[0]->wake(event);
    return n;
}

// Threads that wait for single descriptors come and go: they learn together.
SpinTime &single_spin_time()
{
    static SpinTime spin_time;
    return spin_time;
}
Ways &single_ways()
{
    static constinit Ways ways;
    return ways;
}

/// A sleep that may be a doze. Who may use one processor dozes each time: the waker's is the
/// sleeper's. With others, a futex's wake may have an idle one run the sleeper, and that may take
/// longer than a socket's, which tends to stay on the waker's.
int short_sleep(Waiter &waiter, const Deadline &deadline, const Handled &before)
{
    const Spinning &spinning = process_spinning();
    if (spinning.processors == 1)
        return waiter.doze(deadline, before);
    Ways &ways = single_ways();
    const Ways::Way way = ways.next();
    const std::uint64_t began = spinning.now_ns();
    const int n = way == Ways::Way::Word ? waiter.doze(deadline, before)
                                         : waiter.sleep(deadline, nullptr, before);
    if (n >= 0 && !deadline.passed())
        ways.took(way, spinning.now_ns() - began);
    return n;
}

/// @param tries_again  the caller makes its call again, which looks itself: news are enough for
/// that
int wait_in_laps(Waiter &waiter, const Deadline &deadline, const sigset_t *mask,
                 SpinTime &spin_time, const Handled &before, bool tries_again)
{
    Spin spin(process_spinning(), spin_time);
    // What ends a lap is not looked for again: the look behind it may be what the program waits
    // for.
    bool is_news = false;
    const auto has_news = [&] { return is_news = waiter.has_news(); };
    for (std::uint32_t lap = 0;; lap++) {
        // Where the program has sources alone it takes no system call to find one ready.
        const std::uint32_t every = process_spinning().kernel_every;
        const bool due =
            deadline.at_once() || lap % every == every - 1 || (lap == 0 && waiter.has_native());
        if (!due && waiter.has_signs()) {
            const bool news = is_news || has_news();
            if (news && tries_again)
                return 1;
            if (!news && mask == nullptr && handled().all == before.all && spin.lap(has_news))
                continue;
        }
        is_news = false;
        int n = waiter.has_native() && due ? 0 : waiter.look();
        if (due ? n == 0 : waiter.has_native() && n > 0)
            n = waiter.ask();
        if (n != 0)
            return n;
        if (deadline.at_once())
            return 0;
        if (handled().all != before.all)
            return -EINTR;
        if (deadline.passed())
            return 0;
        if (mask == nullptr && spin.lap(has_news))
            continue;
        spin.stop();
        n = mask == nullptr && waiter.may_doze(deadline) ? short_sleep(waiter, deadline, before)
                                                         : waiter.sleep(deadline, mask, before);
        if (n != 0)
            return n;
    }
}

int wait_or_poll(pollfd *entries, nfds_t n, Source *const *sources, const timespec *timeout,
                 const sigset_t *mask, Attendant *attendant, const Handled *since, bool tries_again)
{
    if (timeout != nullptr && !is_valid(*timeout))
        return -EINVAL;
    const Deadline deadline(timeout);
    if (std::none_of(sources, sources + n,
                     [](const Source *at) { return at != nullptr && at->upgraded(); }))
        return static_cast<int>(since != nullptr ? kernel_sleep(entries, n, deadline, mask, *since)
                                                 : kernel_poll(entries, n, deadline, mask));
    kernel::Array<pollfd, 65> asked(2 * n + 1);
    if (asked.data() == nullptr)
        return -ENOMEM;
    Waiter waiter(entries, n, sources, attendant, asked.data());
    return wait_in_laps(waiter, deadline, mask, single_spin_time(),
                        since != nullptr ? *since : handled(), tries_again);
}

} // namespace

int poll(pollfd *entries, nfds_t n, Source *const *sources, const timespec *timeout,
         const sigset_t *mask, Attendant *attendant, const Handled *since)
{
    return wait_or_poll(entries, n, sources, timeout, mask, attendant, since, false);
}

namespace
{
int wait_for_one(pollfd entry, Source *source, const timespec *timeout, Attendant *attendant,
                 bool restarts, const Handled &before)
{
    const Deadline deadline(timeout);
    Source *const sources[] = {source};
    for (Handled seen = before;;) {
        timespec room;
        long n =
            wait_or_poll(&entry, 1, sources, deadline.left(room), nullptr, attendant, &seen, true);
        if (n == 0)
            return -EAGAIN;
        // The socket's queue of errors has something, which ends no call: nor is it one to look for
        // all the time.
        if (n > 0 && entry.revents == POLLERR && sleep_for_a_while(deadline, seen) != 0)
            n = -EINTR;
        if (n > 0)
            return 0;
        if (n != -EINTR)
            return static_cast<int>(n);
        // As the kernel restarts a call that has no time-out.
        const Handled after = handled();
        if ((timeout != nullptr && !restarts) || after.not_restarting != before.not_restarting ||
            after.all == seen.all)
            return -EINTR;
        if (after.ending != before.ending)
            return -EBADF;
        seen = after;
    }
}
} // namespace

int wait_for(Source &source, std::uint32_t events, const timespec *timeout, Attendant *attendant,
             bool restarts, const Handled *since)
{
    return wait_for_one({source.shadow(), static_cast<short>(events), 0}, &source, timeout,
                        attendant, restarts, since != nullptr ? *since : handled());
}

int wait_for(int fd, std::uint32_t events, const Handled &since)
{
    return wait_for_one({fd, static_cast<short>(events), 0}, nullptr, nullptr, nullptr, true,
                        since);
}

namespace
{

constexpr std::uint32_t read_set = POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR;
constexpr std::uint32_t write_set = POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR;
constexpr std::uint32_t except_set = POLLPRI;
constexpr unsigned word_bits = 8 * sizeof(unsigned long);

/// One of select's sets, of any length.
struct Bits {
    unsigned long *words;

    bool has(int fd) const
    {
        const auto at = static_cast<unsigned>(fd);
        return words != nullptr && (words[at / word_bits] >> (at % word_bits) & 1) != 0;
    }
    void put(int fd) const
    {
        const auto at = static_cast<unsigned>(fd);
        words[at / word_bits] |= 1ul << (at % word_bits);
    }
    void clear(int n) const
    {
        const std::size_t bits = static_cast<unsigned>(n) + word_bits - 1;
        if (words != nullptr)
            std::memset(words, 0, bits / word_bits * sizeof *words);
    }
    unsigned long word(int fd) const
    {
        return words != nullptr ? words[static_cast<unsigned>(fd) / word_bits] : 0;
    }
};

struct KernelsMask {
    const sigset_t *mask;
    std::size_t bytes;
};

} // namespace

int select(int n, fd_set *read, fd_set *write, fd_set *except, const timespec *timeout,
           const sigset_t *mask, Lookup &lookup, Attendant *attendant)
{
    const Bits sets[] = {{reinterpret_cast<unsigned long *>(read)},
                         {reinterpret_cast<unsigned long *>(write)},
                         {reinterpret_cast<unsigned long *>(except)}};
    const auto next = [&](int fd) {
        while (fd < n) {
            if (fd % static_cast<int>(word_bits) == 0 &&
                (sets[0].word(fd) | sets[1].word(fd) | sets[2].word(fd)) == 0) {
                fd += static_cast<int>(word_bits);
                continue;
            }
            if (sets[0].has(fd) || sets[1].has(fd) || sets[2].has(fd))
                return fd;
            fd++;
        }
        return n;
    };
    nfds_t members = 0;
    bool any = false;
    for (int fd = next(0); fd < n; fd = next(fd + 1)) {
        const Source *const source = lookup.source_of(fd);
        any |= source != nullptr && source->upgraded();
        members++;
    }
    if (!any) {
        // The kernel changes a timeout that it is given.
        timespec left = {};
        if (timeout != nullptr)
            left = *timeout;
        KernelsMask own = {mask, 8};
        return static_cast<int>(kernel::call(SYS_pselect6, n, read, write, except,
                                             timeout != nullptr ? &left : nullptr,
                                             mask != nullptr ? &own : nullptr));
    }
    kernel::Array<pollfd, 32> entries(members);
    kernel::Array<Source *, 32> sources(members);
    if (entries.data() == nullptr || sources.data() == nullptr)
        return -ENOMEM;
    nfds_t used = 0;
    for (int fd = next(0); fd < n; fd = next(fd + 1)) {
        const std::uint32_t events = (sets[0].has(fd) ? read_set : 0u) |
                                     (sets[1].has(fd) ? write_set : 0u) |
                                     (sets[2].has(fd) ? except_set : 0u);
        entries.data()[used] = {fd, static_cast<short>(events & ~always), 0};
        sources.data()[used++] = lookup.source_of(fd);
    }
    const Deadline deadline(timeout);
    for (;;) {
        timespec room;
        const int ready =
            poll(entries.data(), used, sources.data(), deadline.left(room), mask, attendant);
        if (ready < 0)
            return ready;
        bool done = ready == 0;
        for (nfds_t i = 0; i < used; i++) {
            pollfd &entry = entries.data()[i];
            const auto now = static_cast<std::uint16_t>(entry.revents);
            if (now & POLLNVAL)
                return -EBADF;
            if (entry.fd < 0 || now == 0)
                continue;
            if ((sets[0].has(entry.fd) && (now & read_set)) ||
                (sets[1].has(entry.fd) && (now & write_set)) ||
                (sets[2].has(entry.fd) && (now & except_set)))
                done = true;
            else
                entry.fd = ~entry.fd; // hung up, which is nothing to who waits to write
        }
        if (done)
            break;
    }
    // The sets are read before they are cleared: an entry's events say which it is in.
    for (const Bits &set : sets)
        set.clear(n);
    int bits = 0;
    for (nfds_t i = 0; i < used; i++) {
        const pollfd &entry = entries.data()[i];
        if (entry.fd < 0)
            continue;
        const std::uint32_t in[] = {read_set, write_set, except_set};
        for (int s = 0; s < 3; s++) {
            const auto events = static_cast<std::uint16_t>(entry.events);
            if ((events & in[s] & ~always) == 0 || (entry.revents & in[s]) == 0)
                continue;
            sets[s].put(entry.fd);
            bits++;
        }
    }
    return bits;
}

} // namespace ntb::socket
