// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_READINESS_SET_HPP
#define NTB_SOCKET_READINESS_SET_HPP

#include <atomic>
#include <cstdint>
#include <ctime>

#include <signal.h>
#include <sys/epoll.h>

#include "kernel/lock.hpp"
#include "readiness/deadline.hpp"
#include "readiness/handlers.hpp"
#include "readiness/links.hpp"
#include "readiness/poll.hpp"
#include "readiness/source.hpp"
#include "spin.hpp"

namespace ntb::socket
{

/// The members of one epoll descriptor, and the wait for them (doc/socket-protocol.md, section 9).
/// All members stay in the kernel's set. The entry of an upgraded one says there when the shadow
/// changes; beside it stands the connection's bell. So a thread sleeps in the kernel's call on
/// the program's own descriptor, which is also right where others poll it.
///
/// Any thread. Results are libc's, with -errno for an error; errno stays as it is.
class Set
{
public:
    /// @param epoll  a descriptor of the set; stays the caller's
    /// @return NULL: no memory
    static Set *create(int epoll, Attendant *attendant);
    /// No call is in it any more. The kernel's set is not touched.
    void destroy();

    /// epoll_ctl().
    /// @param source  of the descriptor, if it has one and it is upgraded, else NULL: the kernel's
    ///                call, which is remembered for upgrade()
    /// @param inner   the set of the descriptor, if it is an epoll descriptor, else NULL
    int control(int op, int fd, Source *source, Set *inner, epoll_event *event);
    /// epoll_pwait2(). Its other forms are this with a timeout made of milliseconds.
    int wait(epoll_event *events, int most, const timespec *timeout, const sigset_t *mask);

    /// The kernel's wait, while that is all there is. @param at_once  it does not sleep
    /// @retval false a member is upgraded: wait() is to be called
    template <typename Kernel>
    bool wait_by_kernel(bool at_once, Kernel kernel, epoll_event *events, int *result)
    {
        if (shared_.load(std::memory_order_relaxed)) [[unlikely]]
            return false;
        if (at_once) {
            *result = kernel();
        } else {
            const std::uint32_t before = sleepers_.fetch_add(1, std::memory_order_seq_cst);
            // Who makes the first entry and then counts sleepers finds this one, or is found.
            *result = shared_.load(std::memory_order_seq_cst) ? 0 : kernel();
            end_sleep(before);
        }
        return !shared_.load(std::memory_order_seq_cst) || keep_native(events, result);
    }
    /// Whether a set of this process has had an upgraded member: until then no set has to know of
    /// members that are none. One load.
    static bool any_shared() { return any_shared_.load(std::memory_order_relaxed); }

    /// Whether upgrade() could find one that this does not know: by what the kernel shows of its
    /// sets in /proc.
    bool can_learn() const;
    /// A descriptor that may be a member has become an upgraded one. (The other way is seen here.)
    /// Threads that sleep in the set need not be woken for it.
    /// @param unknown  it may be one that this does not know
    /// @retval false whether it is one cannot be found out, or the set would not see what comes by
    ///         ring: it may not be upgraded
    bool upgrade(int fd, Source *source, bool unknown = false);
    /// The kernel's call has changed a member that it was not known to have a source, while another
    /// thread upgraded it: that has looked for the member before, or the kernel's entry is not
    /// what it made of it.
    /// @param source  NULL: it has none yet
    /// @return as upgrade()
    bool changed_beside(int op, int fd, Source *source, const epoll_event *event);
    /// A descriptor of a source is about to be closed.
    /// @param last_here  none is left in this process: the source ends after this
    void closed(int fd, Source *source, bool last_here);
    /// A member is about to stand for nothing of ours, and stays open: the kernel's entry is the
    /// program's again.
    void left(int fd, const Source *source);

    /// The descriptor of the set is about to be polled by others, or has become a member of
    /// another set: from now on it is readable in the kernel whenever a member is ready. Called
    /// before each poll of it.
    void settle();
    /// Another descriptor of the set: the one that is known is about to be closed.
    void moved(int epoll);

    /// Around a fork, after which two processes have the kernel's set. A child that only closes
    /// what it has leaves it as it is. Once it uses the set, and its parent or another child has it
    /// as well, the members of all of them go back to the kernel.
    void before_fork();
    void after_fork_in_parent(bool has_child);
    /// Before its first call: the parent's threads are not in it.
    void after_fork_in_child();
    /// It was inherited, and this process has not used it.
    bool is_inherited() const { return inherited_.load(std::memory_order_relaxed); }

private:
    /// What a member is remembered by once its events were reported.
    struct Arrivals {
        std::uint64_t in, out;
        std::uint32_t ends;
    };
    class Order;
    struct Absorbed;
    struct Sharing;

    // OUT is left out until a thread waits for it: it is there nearly always, and would wake those
    // who have the set as a member.
    static constexpr std::uint32_t shadow_events = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET;
    // Of the entries in the kernel's set that are ours, beside the program's: the highest bits are
    // the set's secret, which is no address and no small number, then a link, its generation and
    // the kind.
    static constexpr unsigned kind_bits = 2, generation_bits = 16, index_bits = 22;
    static constexpr unsigned tag_bits = kind_bits + generation_bits + index_bits;
    static constexpr std::uint64_t secret_bits = ~((std::uint64_t{1} << tag_bits) - 1);
    enum Kind : unsigned { Shadow, Bell, Wake, Attended };
    /// Whether an entry with these data is one of ours.
    bool is_ours(std::uint64_t data) const { return (data & secret_bits) == secret_; }
    /// What an entry of ours names.
    struct Place {
        std::uint32_t index;
        std::uint16_t generation;
    };
    static Place place_of(std::uint64_t tag)
    {
        return {static_cast<std::uint32_t>(tag >> (kind_bits + generation_bits)) &
                    ((1u << index_bits) - 1),
                static_cast<std::uint16_t>(tag >> kind_bits)};
    }
    /// The link of such an entry. @return NULL: it stands for nothing here
    Link *link_with_source(Place place)
    {
        if (place.index >= links_.made())
            return nullptr;
        Link *link = links_.at(place.index);
        const bool is_it = link->used && link->generation == place.generation;
        return is_it && link->source != nullptr ? link : nullptr;
    }

    Set() = default;
    ~Set() = default;

    // Under the lock.
    void leave_bell(Link &link);
    void release(Link &link);
    int native(int op, int fd, Link *link, epoll_event *event);
    int control_locked(int op, int fd, Source *source, epoll_event *event);
    int add(int fd, Source *source, const epoll_event &event);
    int modify_new(Link *link, int fd, Source *source, const epoll_event &event);
    void modify(Link &link, const epoll_event &event);
    int enter(Link &link, Source *source, int op);
    long give_entry(const Link &link) const;
    void restore(Link &link);
    bool arm(Link &link);
    /// The bell has rung, or is no longer to be rung for it.
    static void rouse(Link &link)
    {
        if (!link.armed)
            return;
        link.armed = false;
        link.source->disarm(link.armed_for, true);
    }
    static void set_reported(Link &link, const Arrivals &arrivals);
    std::uint32_t evaluate(Link &link, Arrivals &arrivals);
    int collect(epoll_event *events, int most, std::uint32_t looks, std::uint32_t call);
    int collect(epoll_event *events, int most, std::uint32_t looks, std::uint32_t call,
                Order &order);
    int collect_earlier(epoll_event *events, int n, int most, std::uint32_t call, Order &order);
    bool has_news();
    static bool has_no_news(Link &link);
    bool report(Link &link, epoll_event &event, std::uint32_t call);
    void shoot(Link &link);
    Absorbed absorb(epoll_event *events, int first, int n, std::uint32_t call);
    Link *find_leaving(std::uint64_t data);
    bool merge(epoll_event *events, int n, epoll_event &event, std::uint32_t call);
    static bool is_of(std::uint64_t tag, Kind kind);
    Link *absorb_one(std::uint64_t tag, std::uint32_t events);
    bool arm_all();
    static bool is_in_doubt(const Link &link);
    void note_doubt();
    void look_after_doubts();
    void look_after_time();
    void pass_on();
    void wake();
    bool prepare();
    void make_secret();
    bool enter_ready();
    void attend();
    void attend_to(int descriptor);
    void attend_no_more();

    bool may_be_shared() const { return attended_.load(std::memory_order_relaxed) == always_look; }
    void look_at_others(bool adds = false);
    void begin_use();
    void go_native();
    void become_sole();
    void wake_others(bool all);
    void leave_rings();
    bool is_alone() const;
    bool can_be_sole() const;
    void say(const Link &link)
    {
        if (may_be_shared()) [[unlikely]]
            say_to_others(link);
    }
    void say_to_others(const Link &link);
    void hear();
    void take(Link &link, std::uint32_t events, std::uint64_t data, bool off, bool removed);
    bool is_given(const Link &link);
    bool has_unshown();
    std::uint32_t evaluate_as_given(Link &link, Arrivals &arrivals);
    class Given;
    void take_entry(int fd, Link *link, std::uint64_t data);
    void list_members(bool hears = false);
    void forget_list() { listed_by_ = calls_.load(std::memory_order_relaxed) - 1; }
    bool is_used_by_others() const;
    bool is_member(int fd, bool unknown);
    bool has_bell(int fd);
    static bool has_gone_back(Source &source, bool waits);
    bool control_here(int op, int fd, Source *source, epoll_event *event, int *done);
    int control_shared(int op, int fd, Source *source, epoll_event *event);
    int control_native(int op, int fd, Source *source, epoll_event *event);
    int control_native_locked(int op, int fd, Source *source, epoll_event *event, bool *is_late);
    std::uint32_t begin_native_sleep();
    void end_native_sleep(std::uint32_t lates);
    static void step_aside(std::uint32_t &empty, const Deadline &deadline, const sigset_t *mask);
    static bool begin_shared_sleep(Sharing &sharing);
    static void end_shared_sleep(Sharing &sharing);
    void end_sharing();
    /// Threads that sleep in the kernel's set.
    std::uint32_t sleeper_count() const
    {
        return sleepers_.load(std::memory_order_seq_cst) & ~sleepers_counted;
    }
    void count_sleepers(Sharing &sharing);
    /// @param before  sleepers_ as the thread found it
    void end_sleep(std::uint32_t before)
    {
        const std::uint32_t now = sleepers_.fetch_sub(1, std::memory_order_seq_cst);
        // It was counted in its sleep, and takes that back, which no other thread does.
        if ((now & ~before & sleepers_counted) != 0) [[unlikely]]
            end_shared_sleep(*sharing_);
    }

    long kernel_control(int op, int fd, std::uint32_t events, std::uint64_t data) const;
    std::uint64_t tag(unsigned kind, const Link &link) const;
    bool keep_native(epoll_event *events, int *result);
    Link *learn(int fd, bool *unsure);
    int wait_native(epoll_event *events, int most, const Deadline &deadline, const sigset_t *mask);
    int finish(int result);
    std::uint32_t kernel_every() const;
    void heard(bool something);
    int look_once(epoll_event *events, int most, bool all, bool kernel);
    int sleep(epoll_event *events, int most, const Deadline &deadline, const sigset_t *mask,
              const Handled &before, std::uint32_t &empty);

    static inline std::atomic<bool> any_shared_ = false;
    std::atomic<bool> shared_ = false; ///< has had an upgraded member: the kernel's set has ours
    /// With sleepers_counted once those that slept are counted in Sharing, where from then on each
    /// counts itself.
    std::atomic<std::uint32_t> sleepers_ = 0;
    static constexpr std::uint32_t sleepers_counted = std::uint32_t{1} << 31;
    Lock lock_;
    std::atomic<int> epoll_ = -1;
    Attendant *attendant_ = nullptr;
    std::atomic<int> attended_ = -1; ///< or always_look, once the set was shared over a fork
    static constexpr int always_look = -2;
    std::atomic<bool> nested_ = false;
    std::atomic<std::uint32_t> calls_ = 0;
    std::atomic<bool> native_last_ = true;   ///< the last wait ended by a member of the kernel's
    std::atomic<std::uint32_t> unasked_ = 0; ///< looks since the kernel was asked
    std::atomic<std::uint32_t> quiet_ = 0;   ///< times in a row that it had nothing, at most some
    std::uint64_t secret_ = 0;
    SpinTime spin_time_;

    /// Some of the armed members are in doubt (Source), and then looked at again. 0: none is.
    std::atomic<std::uint64_t> doubts_until_ns_ = 0;
    bool doubt_is_new_ = false;      ///< threads may sleep that have begun before it
    bool has_edge_ = false;          ///< something came that others were not shown by wake()
    std::uint32_t shared_bells_ = 0; ///< links whose bell another link has entered
    std::uint32_t orphans_ = 0;      ///< links whose number is closed, while the file is open
    std::uint32_t cursor_ = 0;       ///< who is looked at next
    Links links_;

    // Behind the rest, as few calls need them.
    std::atomic<int> attended_here_ = -1; ///< where attended_ is always_look
    std::atomic<Sharing *> sharing_ = nullptr;
    /// A child has it from its parent, and has not used it: what it closes stays a member there.
    std::atomic<bool> inherited_ = false;
    std::atomic<bool> native_ = false; ///< several processes use it: members are the kernel's
    bool had_entries_ = false;         ///< shared_, at the fork
    // Of a set that is the kernel's:
    std::uint32_t asleep_ = 0;  ///< threads of this process in the kernel's sleep
    std::uint32_t lates_ = 0;   ///< rings that it has got with unread bytes
    std::uint32_t unaware_ = 0; ///< of asleep_, those that sleep since before the last one
    /// The call that has last asked the kernel for all members: no other one goes by the answer.
    std::uint32_t listed_by_ = ~std::uint32_t{0};
};

} // namespace ntb::socket

#endif
