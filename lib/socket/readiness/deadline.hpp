// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_READINESS_DEADLINE_HPP
#define NTB_SOCKET_READINESS_DEADLINE_HPP

#include <cstdint>
#include <ctime>

namespace ntb::socket
{

/// When a wait ends, by the kernel's monotonic clock.
class Deadline
{
public:
    /// @param timeout  NULL: never. Of a valid form
    explicit Deadline(const timespec *timeout);

    bool never() const { return never_; }
    /// The caller does not wait at all.
    bool at_once() const { return at_once_; }
    bool passed() const { return at_once_ || (!never_ && left_ns() == 0); }
    /// This one, or the one in @p ns ns from now, less than a second: whichever comes first.
    Deadline sooner(std::uint64_t ns) const;
    bool within(std::uint64_t ns) const { return at_once_ || (!never_ && left_ns() <= ns); }
    /// @return NULL: never
    const timespec *left(timespec &room) const;
    /// As left(), where a time is needed: never is some centuries.
    void set(timespec &time) const;

private:
    std::uint64_t left_ns() const;

    bool never_;
    bool at_once_ = false;
    std::uint64_t until_ns_ = 0;
};

/// Whether the kernel would take it.
bool is_valid(const timespec &timeout);

} // namespace ntb::socket

#endif
