// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/set.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "kernel/memory.hpp"
#include "kernel/system.hpp"

namespace ntb::socket
{

namespace
{

constexpr std::uint32_t none = ~std::uint32_t{0};
constexpr std::uint32_t always = EPOLLERR | EPOLLHUP;
constexpr std::uint32_t in_events = EPOLLIN | EPOLLRDHUP | EPOLLPRI | EPOLLRDNORM | EPOLLRDBAND;
constexpr std::uint32_t out_events = EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND;
// OUT is left out until somebody waits for it: it is there nearly always, and who has the set as a
// member would be told of it.
constexpr std::uint32_t shadow_events = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET;
constexpr std::uint32_t idle_looks = 64;  // a member that had nothing so often is armed
constexpr std::uint32_t looks_a_lap = 64; // while a thread spins
constexpr int highest_descriptors = 900;  // where hidden descriptors disturb nobody's numbers

// Of the entries in the kernel's set that are ours, beside the program's: the highest bits are the
// set's secret, which is no address and no small number, then a link, its generation and the kind.
constexpr unsigned kind_bits = 2, generation_bits = 16, index_bits = 22;
constexpr unsigned tag_bits = kind_bits + generation_bits + index_bits;
enum Kind : unsigned { Shadow, Bell, Wake, Attended };

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

std::atomic<int> always_readable = -1;

int make_ready_descriptor()
{
    const auto low = static_cast<int>(kernel::call(SYS_eventfd2, 1, EFD_CLOEXEC | EFD_NONBLOCK));
    if (low < 0)
        return low;
    const auto high =
        static_cast<int>(kernel::call(SYS_fcntl, low, F_DUPFD_CLOEXEC, highest_descriptors));
    if (high < 0)
        return low;
    kernel::call(SYS_close, low);
    return high;
}

// One for the process, which lasts as long as it does.
int the_ready_descriptor(int broken)
{
    int at = always_readable.load(std::memory_order_acquire);
    if (at >= 0 && at != broken)
        return at;
    const int made = make_ready_descriptor();
    if (made >= 0 && always_readable.compare_exchange_strong(at, made))
        return made;
    if (made >= 0)
        kernel::call(SYS_close, made);
    return made < 0 ? made : at;
}

long kernel_wait(int epoll, epoll_event *events, int most, const Deadline &deadline,
                 const sigset_t *mask)
{
    timespec room;
    if (deadline.never() || deadline.at_once())
        return kernel::call(SYS_epoll_pwait, epoll, events, most, deadline.never() ? -1 : 0, mask,
                            8);
    const timespec *left = deadline.left(room);
    const long n = kernel::call(SYS_epoll_pwait2, epoll, events, most, left, mask, 8);
    if (n != -ENOSYS)
        return n;
    const long ms =
        std::min(left->tv_sec, time_t{1000000}) * 1000 + (left->tv_nsec + 999999) / 1000000;
    return kernel::call(SYS_epoll_pwait, epoll, events, most, ms, mask, 8);
}

// One number of a line of fdinfo behind a word. @return false: the word is not there
bool number_behind(const char *line, const char *word, int base, std::uint64_t &number)
{
    const char *at = std::strstr(line, word);
    if (at == nullptr)
        return false;
    for (at += std::strlen(word); *at == ' ';)
        at++;
    number = 0;
    for (; *at != 0 && *at != ' ' && *at != '\n'; at++) {
        const int digit = *at <= '9' ? *at - '0' : (*at | 32) - 'a' + 10;
        if (digit < 0 || digit >= base)
            return false;
        number = number * static_cast<unsigned>(base) + static_cast<unsigned>(digit);
    }
    return true;
}

// Whether the kernel has told a one-shot member. Only its list of the members says so.
bool was_told(int epoll, int fd)
{
    char path[48];
    std::snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll);
    const auto file =
        static_cast<int>(kernel::call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0));
    if (file < 0)
        return false;
    char line[160];
    std::size_t length = 0;
    bool told = false;
    for (bool found = false; !found;) {
        char bytes[1024];
        const long n = kernel::call(SYS_read, file, bytes, sizeof bytes);
        if (n <= 0)
            break;
        for (long i = 0; i < n && !found; i++) {
            if (length < sizeof line - 1)
                line[length++] = bytes[i];
            if (bytes[i] != '\n')
                continue;
            line[length] = 0;
            length = 0;
            std::uint64_t number = 0, events = 0;
            found = number_behind(line, "tfd:", 10, number) &&
                    number == static_cast<std::uint64_t>(fd) &&
                    number_behind(line, "events:", 16, events);
            // Of one that is on it has these whatever the program asked for.
            told = found && (events & always) == 0;
        }
    }
    kernel::call(SYS_close, file);
    return told;
}

int now(int epoll, epoll_event *events, int most)
{
    return static_cast<int>(kernel::call(SYS_epoll_pwait, epoll, events, most, 0, nullptr, 8));
}

} // namespace

int ready_descriptor()
{
    return always_readable.load(std::memory_order_acquire);
}

/// A registration: (file, number), as the kernel has them.
struct Set::Link {
    Source *source;     ///< NULL: the kernel's alone, or free
    std::uint64_t data; ///< the program's
    std::uint64_t told_in, told_out;
    std::uint32_t events;    ///< the program's
    std::uint32_t told_ends; ///< RDHUP, HUP and ERR as last told
    std::uint32_t hot;       ///< where in hot_, or none
    std::uint32_t armed_for;
    std::uint32_t told_by; ///< the look
    std::uint32_t index;
    std::uint32_t next_free;
    int fd;
    std::uint16_t generation;
    std::uint8_t idle;
    bool used : 1;
    bool armed : 1;
    bool fresh : 1;    ///< added or modified: an event that is there is new
    bool off : 1;      ///< one-shot, told
    bool removed : 1;  ///< by the program; the kernel still has our entry, for the next time
    bool orphan : 1;   ///< the number is closed, the file open
    bool asks_out : 1; ///< of the shadow
    bool has_bell : 1; ///< the bell's entry is this link's
};

struct Set::Chunk {
    Link links[chunk_links];
};

struct Set::Numbers {
    std::uint32_t link[page_numbers]; ///< index + 1
};

/// What telling a member's events changes.
struct Set::Told {
    std::uint64_t in, out;
    std::uint32_t ends;
};

Set *Set::create(int epoll, Attendant *attendant)
{
    void *memory = kernel::map<Set>(1, MAP_PRIVATE);
    if (memory == nullptr)
        return nullptr;
    Set *set = new (memory) Set;
    set->epoll_ = epoll;
    set->attendant_ = attendant;
    set->free_ = none;
    return set;
}

void Set::destroy()
{
    for (std::uint32_t i = 0; i < made_; i++)
        if (at(i)->armed)
            at(i)->source->disarm(at(i)->armed_for);
    for (Chunk *chunk : chunks_)
        kernel::unmap(chunk, 1);
    for (Numbers *page : numbers_)
        kernel::unmap(page, 1);
    kernel::unmap(hot_, hot_room_);
    this->~Set();
    kernel::unmap(this, 1);
}

// ---- the table of links

Set::Link *Set::at(std::uint32_t index)
{
    return &chunks_[index / chunk_links]->links[index % chunk_links];
}

Set::Link *Set::find(int fd)
{
    const auto number = static_cast<std::uint32_t>(fd);
    if (fd < 0 || number / page_numbers >= pages || numbers_[number / page_numbers] == nullptr)
        return nullptr;
    const std::uint32_t index = numbers_[number / page_numbers]->link[number % page_numbers];
    return index == 0 ? nullptr : at(index - 1);
}

void Set::enter_number(int fd, std::uint32_t index)
{
    const auto number = static_cast<std::uint32_t>(fd);
    numbers_[number / page_numbers]->link[number % page_numbers] = index;
}

Set::Link *Set::make(int fd)
{
    const auto number = static_cast<std::uint32_t>(fd);
    if (fd < 0 || number / page_numbers >= pages)
        return nullptr;
    Numbers *&page = numbers_[number / page_numbers];
    if (page == nullptr && (page = kernel::map<Numbers>(1, MAP_PRIVATE)) == nullptr)
        return nullptr;
    std::uint32_t index = free_;
    if (index == none) {
        index = made_;
        if (index == chunks * chunk_links)
            return nullptr;
        Chunk *&chunk = chunks_[index / chunk_links];
        if (chunk == nullptr && (chunk = kernel::map<Chunk>(1, MAP_PRIVATE)) == nullptr)
            return nullptr;
        if (index >= hot_room_) {
            const std::uint32_t room = std::max(2 * hot_room_, chunk_links);
            auto *hot = kernel::map<std::uint32_t>(room, MAP_PRIVATE);
            if (hot == nullptr)
                return nullptr;
            if (hot_count_ > 0)
                std::memcpy(hot, hot_, hot_count_ * sizeof *hot_);
            kernel::unmap(hot_, hot_room_);
            hot_ = hot;
            hot_room_ = room;
        }
        made_++;
    } else {
        free_ = at(index)->next_free;
    }
    Link *link = at(index);
    const auto generation = static_cast<std::uint16_t>(link->generation + 1);
    *link = {};
    link->index = index;
    link->generation = generation;
    link->fd = fd;
    link->hot = none;
    link->used = true;
    enter_number(fd, index + 1);
    return link;
}

void Set::release(Link &link)
{
    rouse(link);
    cool(link);
    if (link.has_bell && shared_bells_ > 0) {
        // The entry goes over to another link of the connection.
        for (std::uint32_t i = 0; i < made_; i++) {
            Link *other = at(i);
            if (other == &link || !other->used || other->source != link.source)
                continue;
            other->has_bell = true;
            shared_bells_--;
            kernel_control(EPOLL_CTL_MOD, link.source->bell(), EPOLLIN | EPOLLET,
                           tag(Bell, *other));
            link.has_bell = false;
            break;
        }
    } else if (link.source != nullptr && !link.has_bell) {
        shared_bells_--;
    }
    if (link.has_bell)
        kernel_control(EPOLL_CTL_DEL, link.source->bell(), 0, 0);
    if (link.removed && !link.orphan)
        kernel_control(EPOLL_CTL_DEL, link.fd, 0, 0);
    if (link.orphan)
        orphans_--;
    else
        enter_number(link.fd, 0);
    link.used = false;
    link.source = nullptr;
    link.next_free = free_;
    free_ = link.index;
}

void Set::heat(Link &link)
{
    if (link.hot != none || link.off || link.removed)
        return;
    link.hot = hot_count_;
    link.idle = 0;
    hot_[hot_count_++] = link.index;
}

void Set::cool(Link &link)
{
    if (link.hot == none)
        return;
    const std::uint32_t last = hot_[--hot_count_];
    hot_[link.hot] = last;
    at(last)->hot = link.hot;
    link.hot = none;
}

// ---- the kernel's set

std::uint64_t Set::tag(unsigned kind, const Link &link) const
{
    return secret_ | (std::uint64_t{link.index} << (kind_bits + generation_bits)) |
           (std::uint64_t{link.generation} << kind_bits) | kind;
}

long Set::kernel_control(int op, int fd, std::uint32_t events, std::uint64_t data) const
{
    epoll_event event = {};
    event.events = events;
    event.data.u64 = data;
    return kernel::call(SYS_epoll_ctl, epoll_.load(), op, fd, &event);
}

// What the kernel's set has of ours from the first upgraded member on.
bool Set::prepare()
{
    if (shared_.load(std::memory_order_relaxed))
        return true;
    std::uint64_t random = 0;
    kernel::call(SYS_getrandom, &random, sizeof random, 0);
    // Not the bits of an address, of a small number, nor of a negative one.
    secret_ = (random | (std::uint64_t{1} << 63)) & ~(std::uint64_t{1} << 62) &
              ~((std::uint64_t{1} << tag_bits) - 1);
    const int ready = the_ready_descriptor(-1);
    if (ready < 0)
        return false;
    const long added = kernel_control(EPOLL_CTL_ADD, ready, EPOLLONESHOT, secret_ | Wake);
    if (added < 0 && added != -EEXIST)
        return false;
    shared_.store(true, std::memory_order_seq_cst);
    return true;
}

// Makes the descriptor of the set readable, until one thread has been told.
void Set::wake()
{
    int ready = ready_descriptor();
    const long done = kernel_control(EPOLL_CTL_MOD, ready, EPOLLIN | EPOLLONESHOT, secret_ | Wake);
    if (done != -ENOENT && done != -EBADF)
        return;
    // The program has closed what it does not know.
    ready = the_ready_descriptor(ready);
    kernel_control(EPOLL_CTL_ADD, ready, EPOLLIN | EPOLLONESHOT, secret_ | Wake);
}

void Set::attend()
{
    const int descriptor = attendant_ == nullptr ? -1 : attendant_->descriptor();
    if (descriptor == attended_.load(std::memory_order_relaxed))
        return;
    const Locked locked(lock_);
    if (attended_ >= 0)
        kernel_control(EPOLL_CTL_DEL, attended_, 0, 0);
    attended_ = descriptor;
    if (descriptor >= 0)
        kernel_control(EPOLL_CTL_ADD, descriptor, EPOLLIN, secret_ | Attended);
}

// ---- members

int Set::native(int op, int fd, Link *link, epoll_event *event)
{
    const auto done = static_cast<int>(kernel::call(SYS_epoll_ctl, epoll_.load(), op, fd, event));
    if (done < 0)
        return done;
    if (op == EPOLL_CTL_ADD && link != nullptr && link->source != nullptr) {
        // Another file: the member's number was closed unseen.
        release(*link);
        link = nullptr;
    }
    if (op == EPOLL_CTL_DEL) {
        if (link != nullptr)
            release(*link);
        return done;
    }
    if (link == nullptr && (link = make(fd)) == nullptr)
        return done;
    link->events = event->events;
    link->data = event->data.u64;
    return done;
}

// The kernel's entry of an upgraded member becomes ours, and the bell's is beside it.
int Set::enter(Link &link, Source *source, int op)
{
    if (!prepare())
        return -ENOMEM;
    long done = kernel_control(op, link.fd, shadow_events, tag(Shadow, link));
    if (done == -EINVAL && op == EPOLL_CTL_MOD && (link.events & EPOLLEXCLUSIVE)) {
        // An exclusive entry cannot be modified.
        kernel_control(EPOLL_CTL_DEL, link.fd, 0, 0);
        done = kernel_control(EPOLL_CTL_ADD, link.fd, shadow_events, tag(Shadow, link));
    }
    if (done < 0)
        return static_cast<int>(done);
    const long added =
        kernel_control(EPOLL_CTL_ADD, source->bell(), EPOLLIN | EPOLLET, tag(Bell, link));
    if (added < 0 && added != -EEXIST) {
        if (op == EPOLL_CTL_ADD)
            kernel_control(EPOLL_CTL_DEL, link.fd, 0, 0);
        else
            kernel_control(op, link.fd, link.events, link.data);
        return static_cast<int>(added);
    }
    link.source = source;
    link.has_bell = added != -EEXIST;
    if (!link.has_bell)
        shared_bells_++;
    link.fresh = true;
    link.told_ends = 0;
    link.asks_out = false;
    return 0;
}

int Set::add(int fd, Source *source, const epoll_event &event)
{
    if ((event.events & EPOLLEXCLUSIVE) &&
        (event.events & ~(in_events | out_events | always | EPOLLET | EPOLLEXCLUSIVE |
                          static_cast<std::uint32_t>(EPOLLWAKEUP))))
        return -EINVAL;
    Link *link = find(fd);
    if (link != nullptr && link->removed && link->source == source) {
        link->removed = false;
        modify(*link, event);
        return 0;
    }
    // Whether it is a member is the kernel's to say: a number may have been closed unseen.
    if (link != nullptr && !link->removed) {
        const long there = kernel_control(EPOLL_CTL_ADD, fd, 0, tag(Shadow, *link));
        if (there < 0)
            return static_cast<int>(there);
        kernel_control(EPOLL_CTL_DEL, fd, 0, 0);
    }
    if (link != nullptr)
        release(*link);
    link = make(fd);
    if (link == nullptr)
        return -ENOMEM;
    const int done = enter(*link, source, EPOLL_CTL_ADD);
    if (done < 0) {
        link->used = false;
        enter_number(fd, 0);
        link->next_free = free_;
        free_ = link->index;
        return done;
    }
    modify(*link, event);
    return 0;
}

void Set::modify(Link &link, const epoll_event &event)
{
    rouse(link);
    link.events = event.events & ~EPOLLEXCLUSIVE;
    link.data = event.data.u64;
    link.off = false;
    link.fresh = true;
    heat(link);
}

// It is TCP again: the kernel's entry is the program's.
void Set::restore(Link &link)
{
    rouse(link);
    cool(link);
    if (link.has_bell && link.source->bell() >= 0)
        kernel_control(EPOLL_CTL_DEL, link.source->bell(), 0, 0);
    else if (!link.has_bell)
        shared_bells_--;
    link.has_bell = false;
    link.source = nullptr;
    if (link.removed || kernel_control(EPOLL_CTL_MOD, link.fd, link.events, link.data) == -ENOENT)
        release(link);
}

int Set::control(int op, int fd, Source *source, Set *inner, epoll_event *event)
{
    if (op != EPOLL_CTL_DEL && event == nullptr)
        return static_cast<int>(kernel::call(SYS_epoll_ctl, epoll_.load(), op, fd, event));
    if (source != nullptr && (!source->upgraded() || source->bell() < 0))
        source = nullptr;
    int done = 0;
    {
        const Locked locked(lock_);
        done = control_locked(op, fd, source, event);
        if (done == 0 && source != nullptr)
            pass_on();
    }
    if (done == 0 && inner != nullptr && op == EPOLL_CTL_ADD)
        inner->settle();
    return done;
}

int Set::control_locked(int op, int fd, Source *source, epoll_event *event)
{
    Link *link = find(fd);
    const bool was_upgraded = link != nullptr && link->source != nullptr;
    if (was_upgraded && !link->source->upgraded()) {
        if (op == EPOLL_CTL_MOD && !link->removed) {
            if (event->events & EPOLLEXCLUSIVE)
                return -EINVAL;
            link->events = event->events;
            link->data = event->data.u64;
            restore(*link);
            return 0;
        }
        if (op != EPOLL_CTL_ADD || !link->off)
            restore(*link);
        return native(op, fd, find(fd), event);
    }
    if (!was_upgraded) {
        if (source != nullptr && op == EPOLL_CTL_ADD)
            return add(fd, source, *event);
        if (source != nullptr && op == EPOLL_CTL_MOD && link != nullptr &&
            !(event->events & EPOLLEXCLUSIVE)) {
            const int done = enter(*link, source, EPOLL_CTL_MOD);
            if (done == 0)
                modify(*link, *event);
            return done;
        }
        return native(op, fd, link, event);
    }
    switch (op) {
    case EPOLL_CTL_ADD:
        if (source != nullptr)
            return add(fd, source, *event);
        if (link->removed) {
            release(*link);
            link = nullptr;
        }
        return native(op, fd, link, event);
    case EPOLL_CTL_MOD:
        if (link->removed)
            return -ENOENT;
        if (event->events & EPOLLEXCLUSIVE)
            return -EINVAL;
        modify(*link, *event);
        return 0;
    case EPOLL_CTL_DEL:
        if (link->removed)
            return -ENOENT;
        rouse(*link);
        cool(*link);
        link->removed = true;
        return 0;
    default:
        return -EINVAL;
    }
}

void Set::upgrade(int fd, Source *source)
{
    const Locked locked(lock_);
    Link *link = find(fd);
    if (link == nullptr || link->source != nullptr || !source->upgraded() || source->bell() < 0)
        return;
    link->off = (link->events & EPOLLONESHOT) && was_told(epoll_, fd);
    if (enter(*link, source, EPOLL_CTL_MOD) < 0) {
        release(*link);
        return;
    }
    heat(*link);
    pass_on();
}

void Set::closed(int fd, Source *source, bool last_here)
{
    const Locked locked(lock_);
    Link *link = find(fd);
    if (link != nullptr && link->source == source && source != nullptr) {
        if (last_here || link->removed) {
            release(*link);
        } else {
            enter_number(fd, 0);
            link->orphan = true;
            orphans_++;
        }
    } else if (link != nullptr && link->source == nullptr) {
        release(*link);
    }
    if (!last_here || (orphans_ == 0 && shared_bells_ == 0))
        return;
    for (std::uint32_t i = 0; i < made_; i++)
        if (at(i)->used && at(i)->source == source && source != nullptr)
            release(*at(i));
}

void Set::poke(const Source *source)
{
    const Locked locked(lock_);
    for (std::uint32_t i = 0; i < made_; i++) {
        Link *link = at(i);
        if (!link->used || link->source != source)
            continue;
        rouse(*link);
        heat(*link);
    }
    pass_on();
}

void Set::settle()
{
    const Locked locked(lock_);
    nested_ = true;
    if (!shared_.load(std::memory_order_relaxed))
        return;
    kernel_control(EPOLL_CTL_MOD, ready_descriptor(), EPOLLONESHOT, secret_ | Wake);
    pass_on();
}

void Set::moved(int epoll)
{
    const Locked locked(lock_);
    epoll_ = epoll;
}

void Set::after_fork_in_child()
{
    new (&lock_) Lock;
    sleepers_.store(0, std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < made_; i++) {
        Link *link = at(i);
        if (!link->used || link->source == nullptr)
            continue;
        link->armed = false; // that was the parent
        heat(*link);
    }
}

// ---- looking

// The bell has rung, or nobody is to be rung for it any more.
void Set::rouse(Link &link)
{
    if (!link.armed)
        return;
    link.armed = false;
    link.source->disarm(link.armed_for);
}

void Set::tell(Link &link, const Told &told)
{
    link.fresh = false;
    link.told_in = told.in;
    link.told_out = told.out;
    link.told_ends = told.ends;
}

std::uint32_t Set::evaluate(Link &link, Told &told)
{
    Source &source = *link.source;
    if (link.off || link.removed)
        return 0;
    const bool upgraded = source.upgraded();
    if (!upgraded && !link.orphan) {
        restore(link);
        return 0;
    }
    told = {source.arrivals_in(), source.arrivals_out(), 0};
    std::uint32_t now = source.look();
    // It is the look that finds room again, and nobody rings for that. Where it found none, what
    // another one finds afterwards is news.
    if ((now & EPOLLOUT) != 0)
        told.out = source.arrivals_out();
    told.ends = now & (always | EPOLLRDHUP);
    now = widened(now) & (link.events | always);
    if (!(link.events & EPOLLET))
        return now;
    const bool fresh = link.fresh || ((link.events & in_events) && told.in != link.told_in) ||
                       ((link.events & out_events) && told.out != link.told_out) ||
                       (told.ends & ~link.told_ends) != 0;
    if (fresh && now != 0)
        return now;
    // What had arrived is gone again.
    tell(link, told);
    return 0;
}

// Nothing is looked at any more until the bell rings. @retval false something is there: look on
bool Set::arm(Link &link)
{
    link.armed_for = arm_events(link.events);
    link.armed = true;
    link.source->arm(link.armed_for);
    Told told;
    const std::uint32_t now = evaluate(link, told);
    if (!link.armed) // it is the kernel's
        return true;
    if (now != 0) {
        rouse(link);
        return false;
    }
    if ((link.armed_for & EPOLLOUT) && !link.asks_out && !link.orphan) {
        link.asks_out = true;
        kernel_control(EPOLL_CTL_MOD, link.fd, shadow_events | EPOLLOUT, tag(Shadow, link));
    }
    cool(link);
    return true;
}

bool Set::arm_all()
{
    bool all = true;
    for (std::uint32_t i = hot_count_; i-- > 0;) {
        if (i >= hot_count_)
            continue;
        Link *link = at(hot_[i]);
        if (link->source == nullptr || link->off || link->removed)
            cool(*link);
        else
            all &= arm(*link);
    }
    return all;
}

// Who leaves the set while others sleep, or somebody polls the descriptor: every member is armed,
// or the descriptor is readable (rules W5, W8).
void Set::pass_on()
{
    if (sleepers_.load(std::memory_order_seq_cst) == 0 && !nested_)
        return;
    if (!arm_all())
        wake();
}

/// @param call  no member is told twice in one
int Set::collect(epoll_event *events, int most, std::uint32_t looks, std::uint32_t call)
{
    const Locked locked(lock_);
    int n = 0;
    looks = std::min(looks, hot_count_);
    // One that goes is replaced by another, perhaps one that was looked at: it is not counted.
    for (std::uint32_t kept = 0; kept < looks && n < most && hot_count_ > 0;) {
        if (cursor_ >= hot_count_)
            cursor_ = 0;
        Link &link = *at(hot_[cursor_]);
        if (link.source == nullptr || link.off || link.removed) {
            cool(link);
            continue;
        }
        Told told;
        const std::uint32_t now = link.told_by == call ? 0 : evaluate(link, told);
        if (link.hot == none)
            continue; // it has gone back to the kernel
        if (now == 0) {
            if (link.told_by != call && ++link.idle >= idle_looks && arm(link))
                continue;
        } else {
            tell(link, told);
            link.told_by = call;
            link.idle = 0;
            events[n].events = now;
            events[n].data.u64 = link.data;
            n++;
            if (link.events & EPOLLONESHOT) {
                link.off = true;
                cool(link);
                continue;
            }
        }
        cursor_++;
        kept++;
    }
    return n;
}

void Set::absorb_one(std::uint64_t tag, std::uint32_t events)
{
    const unsigned kind = tag & ((1u << kind_bits) - 1);
    if (kind == Attended) {
        attendant_->process();
        return;
    }
    if (kind == Wake)
        return;
    const auto index =
        static_cast<std::uint32_t>(tag >> (kind_bits + generation_bits)) & ((1u << index_bits) - 1);
    if (index >= made_)
        return;
    Link &link = *at(index);
    const auto generation = static_cast<std::uint16_t>(tag >> kind_bits);
    if (!link.used || link.generation != generation || link.source == nullptr)
        return;
    if (kind == Shadow)
        link.source->kernel_said(events);
    for (std::uint32_t i = 0; shared_bells_ > 0 && i < made_; i++) {
        Link *other = at(i);
        if (!other->used || other->source != link.source)
            continue;
        rouse(*other);
        heat(*other);
    }
    rouse(link);
    heat(link);
}

/// Takes what is ours out of what the kernel has told. @return how many are the program's
int Set::absorb(epoll_event *events, int n, bool &ours)
{
    const Locked locked(lock_);
    int kept = 0;
    for (int i = 0; i < n; i++) {
        const std::uint64_t data = events[i].data.u64;
        if ((data & ~((std::uint64_t{1} << tag_bits) - 1)) == secret_) {
            absorb_one(data, events[i].events);
            ours = true;
        } else {
            events[kept++] = events[i];
        }
    }
    return kept;
}

// ---- waiting

int Set::finish(int result)
{
    if (!shared_.load(std::memory_order_relaxed))
        return result;
    if (sleepers_.load(std::memory_order_seq_cst) == 0 && !nested_)
        return result;
    const Locked locked(lock_);
    pass_on();
    return result;
}

/// @param all     look at every member that is not armed, else at some
/// @param kernel  ask it too
int Set::look_once(epoll_event *events, int most, bool all, bool kernel)
{
    const std::uint32_t looks = all ? none : looks_a_lap;
    const std::uint32_t call = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
    int n = collect(events, most, looks, call);
    if (n > 0 &&
        unasked_.fetch_add(1, std::memory_order_relaxed) + 1 < process_spinning().kernel_every)
        return n;
    if (n == most || !(kernel || n > 0))
        return n;
    for (;;) {
        unasked_.store(0, std::memory_order_relaxed);
        bool ours = false;
        const int asked = now(epoll_, events + n, most - n);
        if (asked < 0)
            return n > 0 ? n : asked;
        const int kept = absorb(events + n, asked, ours);
        told_native_.store(kept > 0, std::memory_order_relaxed);
        n += kept;
        if (n == most || !ours)
            return n;
        // What the kernel's entries of ours stand for.
        n += collect(events + n, most - n, none, call);
        if (n > 0)
            return n;
    }
}

int Set::sleep(epoll_event *events, int most, const Deadline &deadline, const sigset_t *mask,
               const Handled &before)
{
    {
        const Locked locked(lock_);
        if (!arm_all())
            return 0;
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
    }
    // From here to the kernel's wait no handler runs (rule W9).
    std::uint64_t every = ~std::uint64_t{0}, own = 0;
    kernel::call(SYS_rt_sigprocmask, SIG_SETMASK, &every, &own, 8);
    long n = -EINTR;
    if (handled().all == before.all)
        n = kernel_wait(epoll_, events, most, deadline,
                        mask != nullptr ? mask : reinterpret_cast<const sigset_t *>(&own));
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    kernel::call(SYS_rt_sigprocmask, SIG_SETMASK, &own, nullptr, 8);
    if (n <= 0)
        return static_cast<int>(n);
    bool ours = false;
    const int kept = absorb(events, static_cast<int>(n), ours);
    told_native_.store(kept > 0, std::memory_order_relaxed);
    return kept + collect(events + kept, most - kept, none,
                          calls_.fetch_add(1, std::memory_order_relaxed) + 1);
}

/// The kernel's call. @return also what it has told of our entries, made since
int Set::wait_native(epoll_event *events, int most, const Deadline &deadline, const sigset_t *mask)
{
    if (deadline.at_once())
        return static_cast<int>(kernel_wait(epoll_, events, most, deadline, mask));
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    // Who makes the first entry and then counts sleepers finds this one, or is found.
    long n = 0;
    if (most <= 0 || !shared_.load(std::memory_order_seq_cst))
        n = kernel_wait(epoll_, events, most, deadline, mask);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    return static_cast<int>(n);
}

int Set::wait(epoll_event *events, int most, const timespec *timeout, const sigset_t *mask)
{
    if (timeout != nullptr && !is_valid(*timeout))
        return -EINVAL;
    const Deadline deadline(timeout);
    if (most <= 0 || !shared_.load(std::memory_order_seq_cst)) {
        int n = wait_native(events, most, deadline, mask);
        if (n < 0 || !shared_.load(std::memory_order_seq_cst))
            return n;
        bool ours = false;
        n = absorb(events, n, ours);
        if (n > 0)
            return finish(n);
    }
    const Handled before = handled();
    Spin spin(process_spinning(), window_);
    bool slept = false;
    for (std::uint32_t lap = 0;; lap++) {
        attend();
        // What the members say that are looked at needs no system call; nor are they delayed by
        // one, unless the kernel's had something last time.
        const std::uint32_t every = process_spinning().kernel_every;
        const bool kernel = deadline.at_once() || slept || lap % every == every - 1 ||
                            (lap == 0 && told_native_.load(std::memory_order_relaxed));
        const int n = look_once(events, most, lap == 0 || slept, kernel);
        if (n != 0)
            return finish(n);
        if (deadline.at_once())
            return finish(0);
        if (handled().all != before.all)
            return finish(-EINTR);
        if (deadline.passed())
            return finish(0);
        // With a mask of its own the caller wants signals that only the kernel's wait lets in.
        if (mask == nullptr && sleepers_.load(std::memory_order_relaxed) == 0 && spin.lap())
            continue;
        spin.stop();
        const int told = sleep(events, most, deadline, mask, before);
        if (told != 0)
            return finish(told);
        slept = true;
    }
}

} // namespace ntb::socket
