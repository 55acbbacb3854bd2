// SPDX-License-Identifier: BSD-3-Clause
// What the kernel is asked about its own set, and the descriptor by which its sleepers are woken.
#ifndef NTB_SOCKET_READINESS_KERNEL_SET_HPP
#define NTB_SOCKET_READINESS_KERNEL_SET_HPP

#include <cstdint>

#include <signal.h>
#include <sys/epoll.h>

#include "readiness/deadline.hpp"
#include "readiness/handlers.hpp"

namespace ntb::socket
{

/// epoll_pwait2(), also where the kernel has none or a sandbox refuses it.
/// @return a count, or -errno
long kernel_wait(int epoll, epoll_event *events, int most, const Deadline &deadline,
                 const sigset_t *mask);

/// As kernel_wait(), for as long as no handler has run. @param before  handled(), before a look
long kernel_sleep(int epoll, epoll_event *events, int most, const Deadline &deadline,
                  const sigset_t *mask, const Handled &before);

/// A member, as the list of the set's members in /proc has it.
struct KernelEntry {
    std::uint32_t events;
    std::uint64_t data;

    /// A one-shot one that was reported. Of one that is on the kernel has ERR and HUP, whatever the
    /// program asked for.
    bool is_off() const;
};
enum class Found { Member, Nothing, Unsure };

/// @retval Found::Unsure the list cannot be read, or does not say which file the number was of
Found find_entry(int epoll, int fd, KernelEntry *entry);

/// Who hears of the members that the list has.
class Entries
{
public:
    virtual bool wants(int fd) = 0;
    /// @param entry  NULL: not certain. Twice for a number: it is not certain which one it stands
    /// for
    virtual void take(int fd, const KernelEntry *entry) = 0;

protected:
    ~Entries() = default;
};
/// As find_entry() for all members, by one look. @retval false the list cannot be read
bool list_entries(int epoll, Entries &entries);
/// Whether the list can be read.
bool can_find_entries(int epoll);
/// Whether the kernel has reported a one-shot member, which is off since.
bool was_reported(int epoll, int fd);

/// The descriptor that is always readable, by which sets wake their sleepers: the process's own,
/// that no program may close. -1: none yet
int ready_descriptor();
/// The same, made if there is none or it is the one that is broken. @return -errno: none
int make_ready_descriptor(int broken);

} // namespace ntb::socket

#endif
