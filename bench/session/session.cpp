// SPDX-License-Identifier: BSD-3-Clause
#include "session/session.hpp"

#include "cpu_share.hpp"
#include "machine.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench
{

namespace
{

constexpr uint64_t ms = 1000000;
constexpr uint64_t open_bound = 60000 * ms;
constexpr uint64_t answer_grace = 15000 * ms; ///< beyond a command's own bound: meeting as well
constexpr uint64_t look_every = 100 * ms;     ///< at whether a child has died
constexpr unsigned huge_pages_wanted = 180;   ///< two hosts of 180 MiB, with 1000 channels

volatile sig_atomic_t signal_seen = 0;

void on_signal(int number)
{
    signal_seen = number;
}

bool had_core(const Result &result)
{
    return app::CpuShare::of(result.cpu_ns, result.wall_ns) >= app::least_cpu_share;
}

} // namespace

void catch_signals()
{
    struct sigaction action = {};
    action.sa_handler = on_signal; // no SA_RESTART: waits shall end
    for (int number : {SIGINT, SIGTERM, SIGHUP})
        sigaction(number, &action, nullptr);
}

bool interrupted()
{
    return signal_seen != 0;
}

bool Answers::undisturbed() const
{
    return had_core(of[0]) && had_core(of[1]);
}

Session::~Session()
{
    reap(true);
    remove_folder();
    if (m_shared)
        munmap(m_shared, shared_map_bytes());
    if (m_shared_fd >= 0)
        close(m_shared_fd);
}

bool Session::make_folder()
{
    const char *base = getenv("TMPDIR");
    std::string folder = std::string(base && *base ? base : "/tmp") + "/ntbmsg_bench.XXXXXX";
    if (!mkdtemp(folder.data())) {
        m_error = "cannot make a folder " + folder + ": " + strerror(errno);
        return false;
    }
    m_folder = folder;
    return true;
}

/// Once the hosts are joined, the socket's name and what EAL makes at start are not needed.
void Session::remove_folder()
{
    std::error_code ignored;
    if (!m_folder.empty())
        std::filesystem::remove_all(m_folder, ignored);
    m_folder.clear();
}

bool Session::start(const SessionOptions &options)
{
    m_options = options;
    m_shared_fd = shared_create();
    m_shared = m_shared_fd >= 0 ? shared_map(m_shared_fd) : nullptr;
    if (!m_shared) {
        m_error = std::string("no shared memory: ") + strerror(errno);
        return false;
    }
    m_huge_pages = !options.no_huge && app::read_machine().huge_pages_free >= huge_pages_wanted;
    m_alive = make_folder() && spawn(0) && spawn(1);
    return m_alive;
}

bool Session::spawn(unsigned side)
{
    // Prepared before the fork: between fork and exec only async-signal-safe calls are allowed.
    const std::string words[] = {"ntbmsg_bench",
                                 "--worker",
                                 std::to_string(side),
                                 std::to_string(m_options.cpus[side]),
                                 std::to_string(m_shared_fd),
                                 m_folder,
                                 m_huge_pages ? "huge" : "small",
                                 m_options.realtime ? "realtime" : "fair",
                                 std::to_string(getpid())};
    char *arguments[std::size(words) + 1] = {};
    for (size_t i = 0; i < std::size(words); i++)
        arguments[i] = const_cast<char *>(words[i].c_str());
    const pid_t child = fork();
    if (child < 0) {
        m_error = std::string("cannot fork: ") + strerror(errno);
        return false;
    }
    if (child == 0) {
        fcntl(m_shared_fd, F_SETFD, 0);
        dup2(STDERR_FILENO, STDOUT_FILENO); // the table on stdout stays clean
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    m_children[side] = child;
    return true;
}

bool Session::child_died()
{
    for (unsigned side = 0; side < 2; side++) {
        int status = 0;
        if (m_children[side] < 0 || waitpid(m_children[side], &status, WNOHANG) == 0)
            continue;
        m_children[side] = -1;
        m_error = "host " + std::to_string(side) + " ended unexpectedly, " +
                  (WIFSIGNALED(status) ? std::string("signal ") + strsignal(WTERMSIG(status))
                                       : "status " + std::to_string(WEXITSTATUS(status)));
        return true;
    }
    return false;
}

uint32_t Session::issue(const Command &command)
{
    m_shared->command = command;
    m_shared->issued.store(++m_number, std::memory_order_release); // pairs with the children's load
    futex_wake(m_shared->issued);
    return m_number;
}

bool Session::finished(uint32_t number, unsigned side) const
{
    return m_shared->seats[side].finished.load(std::memory_order_acquire) == number;
}

/// Until all of [first_side, last_side] have answered.
bool Session::await(uint32_t number, unsigned first_side, unsigned last_side, uint64_t bound_ns)
{
    const uint64_t give_up = monotonic_ns() + bound_ns + answer_grace;
    for (;;) {
        const uint32_t results = m_shared->results.load(std::memory_order_acquire);
        if (finished(number, first_side) && finished(number, last_side))
            return true;
        if (interrupted()) {
            m_error = "interrupted";
            return false;
        }
        if (child_died())
            return false;
        if (monotonic_ns() > give_up) {
            m_error = "a host did not answer in time";
            return false;
        }
        futex_wait(m_shared->results, results, look_every);
    }
}

std::optional<Answers> Session::run(const Command &command)
{
    m_alive = m_alive && await(issue(command), 0, 1, command.bound_ns);
    if (!m_alive)
        return std::nullopt;
    return Answers{{m_shared->seats[0].result, m_shared->seats[1].result}};
}

std::optional<Answers> Session::run_well(const Command &command)
{
    auto answers = run(command);
    if (answers && answers->error()) {
        m_error = answers->text();
        answers.reset();
    }
    return answers;
}

bool Session::open_hosts()
{
    Command command{};
    command.op = Op::host_open;
    m_shape = command.shape = usual_shape;
    command.bound_ns = open_bound;
    m_hosts_open = run_well(command).has_value();
    if (!m_options.restarts)
        remove_folder();
    return m_hosts_open;
}

bool Session::shape_hosts(const Shape &shape)
{
    if (m_shape == shape)
        return true;
    Command command{};
    command.op = Op::host_shape;
    command.shape = shape;
    command.shape.credit = shape.channels != 0 ? m_options.credit : 0;
    command.bound_ns = open_bound;
    const bool done = run_well(command).has_value();
    m_shape = done ? std::optional(shape) : std::nullopt;
    return done;
}

/// Ends the sender without a word. @return the time of that
uint64_t Session::kill_second()
{
    const pid_t victim = m_children[1];
    m_children[1] = -1;
    m_alive = false;
    const uint64_t killed = monotonic_ns();
    kill(victim, SIGKILL);
    waitpid(victim, nullptr, 0);
    return killed;
}

std::optional<uint64_t> Session::kill_to_event(std::string &error)
{
    constexpr uint64_t traffic_ns = 200 * ms;
    Command command{};
    command.op = Op::host_await_loss;
    command.payload = 64;
    command.batch = 32;
    command.bound_ns = 3000 * ms;
    command.run_ns = command.bound_ns;
    if (m_children[1] < 0) {
        error = "the host is gone already";
        return std::nullopt;
    }
    const uint32_t number = issue(command);
    const uint64_t until = monotonic_ns() + traffic_ns;
    while (!finished(number, 0) && !interrupted() && monotonic_ns() < until)
        usleep(10000);
    const uint64_t killed = kill_second();
    const Result &survivor = m_shared->seats[0].result;
    if (!await(number, 0, 0, command.bound_ns))
        error = m_error;
    else if (survivor.error)
        error = survivor.text;
    else if (survivor.check < killed)
        error = "the host was lost before it was killed";
    else
        return survivor.check - killed;
    return std::nullopt;
}

std::optional<Session::Restart> Session::restart_to_message(std::string &error)
{
    Command command{};
    command.op = Op::host_restart;
    command.shape = usual_shape;
    command.bound_ns = open_bound;
    const uint64_t begun = monotonic_ns();
    m_alive = m_folder.empty() ? false : spawn(1);
    const auto answers = m_alive ? run_well(command) : std::nullopt;
    if (!answers) {
        error = m_error;
        return std::nullopt;
    }
    const uint64_t came = answers->of[0].check;
    return Restart{came - answers->of[1].check, came - begun};
}

void Session::end()
{
    if (!m_shared || m_children[0] < 0)
        return;
    Command command{};
    if (m_alive && m_hosts_open) {
        command.op = Op::host_close;
        run(command);
    }
    command.op = Op::quit;
    issue(command);
    reap(false);
}

/// Without force the children have a second to go by themselves.
void Session::reap(bool force)
{
    const uint64_t give_up = monotonic_ns() + (force ? 0 : 1000 * ms);
    for (pid_t &child : m_children) {
        if (child < 0)
            continue;
        bool gone = false;
        while (!gone && monotonic_ns() < give_up) {
            gone = waitpid(child, nullptr, WNOHANG) != 0;
            usleep(1000);
        }
        if (!gone) {
            kill(child, SIGKILL);
            waitpid(child, nullptr, 0);
        }
        child = -1;
    }
}

} // namespace bench
