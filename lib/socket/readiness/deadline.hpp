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
    /// This one, or that at @p ns of now_ns(), which is in less than a second: the first of both.
    Deadline sooner_at(std::uint64_t ns) const;
    /// As sooner_at(), from now on.
    Deadline sooner(std::uint64_t ns) const { return sooner_at(now_ns() + ns); }
    bool within(std::uint64_t ns) const { return at_once_ || (!never_ && left_ns() <= ns); }
    /// @return NULL: never
    const timespec *left(timespec &room) const;
    /// As left(), where a time is needed: never is some centuries.
    void set(timespec &time) const;

    /// Of the same clock.
    static std::uint64_t now_ns();

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
