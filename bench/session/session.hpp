// SPDX-License-Identifier: BSD-3-Clause
// The parent's side: two children, each one host on its own core, that run the same command at the
// same time. The parent sleeps meanwhile; nothing of a session outlives it.
#ifndef BENCH_SESSION_SESSION_HPP
#define BENCH_SESSION_SESSION_HPP

#include "session/shared.hpp"

#include <optional>
#include <string>
#include <sys/types.h>

namespace bench
{

/// What both children answered to one command.
struct Answers {
    Result of[2];

    /// @return 0 or the first error
    int error() const { return of[0].error ? of[0].error : of[1].error; }
    const char *text() const { return of[0].error ? of[0].text : of[1].text; }
    /// Whether both polling threads had their cores to themselves.
    bool undisturbed() const;
};

struct SessionOptions {
    unsigned cpus[2];
    bool realtime;   ///< poll with real-time priority while something is measured
    bool no_huge;    ///< without huge pages, even where there are enough
    uint32_t credit; ///< Shape::credit of all channels
    bool restarts;   ///< restart_to_message() will be asked for
};

class Session
{
public:
    Session() = default;
    ~Session();
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    /// Starts the children. @return false: error() says why
    bool start(const SessionOptions &options);

    /// Runs a command on both. @return nothing when a child died, hung, or a signal came; the
    /// session is over then. A failed operation is an answer with an error.
    std::optional<Answers> run(const Command &command);

    /// The same, but an answer with an error is nothing too.
    std::optional<Answers> run_well(const Command &command);

    /// Opens the two hosts: EAL, device, endpoint; returns when they are connected.
    bool open_hosts();

    /// Opens their endpoints anew unless they have that shape already.
    bool shape_hosts(const Shape &);
    /// After a failure: the next shape_hosts() opens them anew in any case.
    void forget_shape() { m_shape.reset(); }

    /// Kills child 1 while it sends to child 0. @return ns until its loss was reported to child 0,
    /// or nothing: @p error says why
    std::optional<uint64_t> kill_to_event(std::string &error);

    struct Restart {
        uint64_t from_device;  ///< ns from the start of the device until the message was delivered
        uint64_t from_process; ///< ns from the start of the process
    };
    /// After kill_to_event(): starts another child 1, which opens its host and sends a message.
    /// @return nothing: @p error says why
    std::optional<Restart> restart_to_message(std::string &error);

    /// Asks the children to end, and waits for that.
    void end();

    /// Whether both children are there and answer.
    bool alive() const { return m_alive; }
    bool huge_pages() const { return m_huge_pages; }
    const std::string &error() const { return m_error; }

private:
    bool make_folder();
    void remove_folder();
    bool spawn(unsigned side);
    bool child_died();
    uint32_t issue(const Command &command);
    bool finished(uint32_t number, unsigned side) const;
    bool await(uint32_t number, unsigned first_side, unsigned last_side, uint64_t bound_ns);
    uint64_t kill_second();
    void reap(bool force);

    Shared *m_shared = nullptr;
    int m_shared_fd = -1;
    pid_t m_children[2] = {-1, -1};
    uint32_t m_number = 0;
    std::optional<Shape> m_shape; ///< of the hosts' endpoints
    std::string m_folder;
    std::string m_error;
    bool m_alive = false;
    bool m_hosts_open = false;
    bool m_huge_pages = false;
    SessionOptions m_options{};
};

/// From here on SIGINT, SIGTERM and SIGHUP end the run in order.
void catch_signals();
bool interrupted();

} // namespace bench

#endif
