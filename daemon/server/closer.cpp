// SPDX-License-Identifier: BSD-3-Clause
#include "server/closer.hpp"

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ntbd
{

namespace
{
constexpr int interruption = SIGUSR1;

void let_signals_interrupt()
{
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    sigaction(interruption, &action, nullptr);
}

// Of a socket that takes no more. With credentials an empty message differs from the end.
bool holds_descriptors(int fd)
{
    const int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0)
        return true;
    for (;;) {
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
        msghdr header = {};
        header.msg_control = control;
        header.msg_controllen = sizeof(control);
        if (recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT) < 0) {
            // An error of the connection comes once, before what lies in the socket.
            if (errno == ECONNRESET || errno == EINTR)
                continue;
            return errno != EAGAIN;
        }
        if (header.msg_controllen == 0)
            return false;
        if ((header.msg_flags & MSG_CTRUNC) != 0)
            return true;
        recv(fd, nullptr, 0, MSG_DONTWAIT);
    }
}
} // namespace

// Lives as long as a thread that is stuck.
struct Closer::Shared {
    struct Job {
        int fd;
        uint64_t ticket;
        Close look;
    };
    struct User {
        std::deque<Job> jobs;
        size_t pending = 0; // with the one that is being closed
        std::condition_variable wakes;
        pthread_t thread;
    };

    Shared(Close function, std::chrono::milliseconds stays)
        : close(std::move(function)), idle(stays), fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
    {
    }
    Shared(const Shared &) = delete;
    Shared &operator=(const Shared &) = delete;
    ~Shared() { ::close(fd); }

    void end(int job, const Close &look) const
    {
        if (look)
            look(job);
        close(job);
    }

    const Close close;
    const std::chrono::milliseconds idle;
    const int fd;
    std::mutex lock;
    // The rest with the lock held. A user is known while it has a thread.
    std::map<uid_t, User> users;
    std::vector<uint64_t> closed;
    std::condition_variable left; // a thread has
    bool ends = false;
};

Closer::Closer(uid_t own, Close close, std::chrono::milliseconds idle) : own_(own)
{
    if (!close)
        close = [](int fd) { ::close(fd); };
    shared_ = std::make_shared<Shared>(std::move(close), idle);
    let_signals_interrupt();
}

Closer::~Closer()
{
    std::unique_lock held(shared_->lock);
    shared_->ends = true;
    for (auto &[_, user] : shared_->users)
        user.wakes.notify_one();
    shared_->left.wait_for(held, patience, [&] { return shared_->users.empty(); });
}

void Closer::close(uid_t uid, int fd, uint64_t ticket, Close look)
{
    if (trusts(uid)) {
        shared_->end(fd, look);
        return;
    }
    const std::lock_guard held(shared_->lock);
    const auto [found, is_new] = shared_->users.try_emplace(uid);
    Shared::User &user = found->second;
    user.jobs.push_back({fd, ticket, std::move(look)});
    user.pending++;
    if (!is_new) {
        user.wakes.notify_one();
        if (user.pending > pending_most)
            pthread_kill(user.thread, interruption);
        return;
    }
    try {
        std::thread thread([shared = shared_, uid] { run(shared, uid); });
        user.thread = thread.native_handle();
        thread.detach();
    } catch (const std::system_error &) {
        // Better to wait for one than to keep it.
        shared_->end(fd, user.jobs.back().look);
        shared_->users.erase(found);
        if (ticket != 0)
            shared_->closed.push_back(ticket);
        eventfd_write(shared_->fd, 1);
    }
}

void Closer::close_socket(uid_t uid, int fd)
{
    if (!trusts(uid)) {
        shutdown(fd, SHUT_RDWR);
        if (is_behind(uid) && !holds_descriptors(fd)) {
            shared_->close(fd);
            return;
        }
    }
    close(uid, fd);
}

bool Closer::is_behind(uid_t uid) const
{
    if (trusts(uid))
        return false;
    const std::lock_guard held(shared_->lock);
    const auto found = shared_->users.find(uid);
    return found != shared_->users.end() && found->second.pending >= pending_max;
}

int Closer::fd() const
{
    return shared_->fd;
}

std::vector<uint64_t> Closer::take_closed()
{
    const std::lock_guard held(shared_->lock);
    eventfd_t none;
    eventfd_read(shared_->fd, &none);
    return std::exchange(shared_->closed, {});
}

void Closer::run(const std::shared_ptr<Shared> &shared, uid_t uid)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, interruption);
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    std::unique_lock held(shared->lock);
    Shared::User &user = shared->users.at(uid);
    const auto has_work = [&] { return !user.jobs.empty() || shared->ends; };
    while (user.wakes.wait_for(held, shared->idle, has_work) && !user.jobs.empty()) {
        const Shared::Job job = std::move(user.jobs.front());
        user.jobs.pop_front();
        held.unlock();
        shared->end(job.fd, job.look);
        held.lock();
        if (job.ticket != 0)
            shared->closed.push_back(job.ticket);
        if (job.ticket != 0 || user.pending == pending_max)
            eventfd_write(shared->fd, 1);
        user.pending--;
    }
    shared->users.erase(uid);
    shared->left.notify_all();
}

} // namespace ntbd
