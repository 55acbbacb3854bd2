// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_PRELOAD_STATE_HPP
#define NTB_SOCKET_PRELOAD_STATE_HPP

#include "config/config.hpp"
#include "preload/figures.hpp"
#include "readiness/links.hpp"
#include "table/table.hpp"

#include <cerrno>

namespace ntb::socket::preload
{

/// The variables that ntb-run sets. They are read when the library is loaded: programs such as
/// nginx have no environment left later.
constexpr const char *config_variable = "NTB_SOCKET_CONFIG";
constexpr const char *verbose_variable = "NTB_SOCKET_VERBOSE";

/// The state of this process. Without a configuration all is empty, and every call is libc's.
struct State {
    Table table;
    Config config;
    Figures *figures = nullptr; ///< NULL: nothing is tracked
    bool verbose = false;       ///< calls and bytes are counted, and reported at the end
    std::atomic<bool> uses_io_uring = false;
    std::atomic<bool> has_sets = false; ///< an epoll descriptor was ever made
    int report = -1;                    ///< where to: a copy of standard error
    std::atomic<int> pid = 0;
};
extern State state;

/// Keeps errno as the program has it.
class KeepErrno
{
public:
    KeepErrno() : saved_(errno) {}
    ~KeepErrno() { errno = saved_; }
    KeepErrno(const KeepErrno &) = delete;
    KeepErrno &operator=(const KeepErrno &) = delete;

private:
    const int saved_;
};

inline void count(Reason reason)
{
    if (state.figures != nullptr)
        state.figures->reasons[static_cast<int>(reason)].fetch_add(1, std::memory_order_relaxed);
}

/// A call on a connection that is tracked, or a wait.
inline void count(Call call)
{
    if (state.verbose) [[unlikely]]
        state.figures->calls[static_cast<int>(call)].fetch_add(1, std::memory_order_relaxed);
}

int own_pid();
/// A child of vfork() has the parent's memory, but descriptors of its own: all that it changes here
/// is a place in the family, for a program that is to have a connection.
bool is_own_process();

/// A descriptor of the library's own: out of the programs' way, and of close()'s.
/// @param fd  taken over @return its new number, or -1
int hide(int fd);

/// A number stands for something new: a new descriptor was made.
void born_slowly(int fd);
inline int born(int fd)
{
    if (state.table.find(fd) != nullptr) [[unlikely]]
        born_slowly(fd);
    return fd;
}

/// A descriptor is about to be closed by the kernel. A set may know a number that stands for
/// nothing if it knows any, and one that was added to a set is to be forgotten there.
void closing_slowly(int fd);
inline void closing(int fd)
{
    if (state.table.find(fd) != nullptr || state.table.was_added(fd) || Links::any()) [[unlikely]]
        closing_slowly(fd);
}

/// A connection has been made: it is tracked if the configuration wants that.
/// @param peer        as connect() was given it; or NULL: the kernel knows
/// @param connecting  connect() has only begun
void made(Role role, int fd, const sockaddr *peer, socklen_t length, bool connecting);

/// A connection was open when the program was started, and has this place in the family.
void inherited(int fd, std::uint64_t cookie, int place);

/// Around fork(), where the program's call is seen: then those of pthread_atfork() do nothing.
void before_fork();
void after_fork(pid_t child);

/// What the connections of this process have done goes into the figures.
void take_figures();

/// With -v: what happened, once, at the end of the process.
void report();

} // namespace ntb::socket::preload

#endif
