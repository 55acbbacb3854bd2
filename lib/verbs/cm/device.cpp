// SPDX-License-Identifier: BSD-3-Clause
#include "cm/device.hpp"

#include <cerrno>
#include <climits>

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "locked.hpp"

namespace ntb::verbs::cm
{
namespace
{

// A sleep that a signal interrupts, or restarts, as it does that of a read: a futex without a
// time-out is of that kind.
int await_change(const std::atomic<std::uint32_t> &turns, std::uint32_t seen)
{
    static_assert(sizeof(turns) == sizeof(std::uint32_t));
    const long slept = syscall(SYS_futex, &turns, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    return slept != 0 && errno == EINTR ? -EINTR : 0;
}

void wake_all(std::atomic<std::uint32_t> &turns)
{
    turns.fetch_add(1);
    syscall(SYS_futex, &turns, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// No one else reads it, but a program might: it must not block here.
void take_one(int descriptor)
{
    pollfd readable = {descriptor, POLLIN, 0};
    std::uint64_t count;
    if (poll(&readable, 1, 0) == 1) [[maybe_unused]]
        const ssize_t taken = read(descriptor, &count, sizeof(count));
}

void add(int descriptor, std::uint64_t count)
{
    [[maybe_unused]] const ssize_t written = ::write(descriptor, &count, sizeof(count));
}

bool awaits_event(const void *bytes, std::size_t size)
{
    Command command;
    return command.read(bytes, size) == 0 && command.number() == RDMA_USER_CM_CMD_GET_EVENT;
}

} // namespace

Device::~Device()
{
    network_.stop();
    while (!channels_.empty())
        close(channels_.begin()->first);
}

int Device::start(const char *socket)
{
    const int error = network_.open(socket);
    return error != 0 ? error : network_.start(*this);
}

std::shared_ptr<Device::Channel> Device::find(int descriptor)
{
    const Locked locked(table_mutex_);
    const auto at = channels_.find(descriptor);
    return at != channels_.end() ? at->second : nullptr;
}

int Device::open(int flags)
{
    const int descriptor = eventfd(0, EFD_SEMAPHORE | ((flags & O_CLOEXEC) != 0 ? EFD_CLOEXEC : 0) |
                                          ((flags & O_NONBLOCK) != 0 ? EFD_NONBLOCK : 0));
    if (descriptor < 0)
        return -errno;
    const Locked locked(mutex_);
    {
        const Locked table(table_mutex_);
        channels_[descriptor] = std::make_shared<Channel>();
    }
    manager_.open(descriptor);
    return descriptor;
}

ssize_t Device::write(int descriptor, const void *bytes, std::size_t size)
{
    const std::shared_ptr<Channel> channel = find(descriptor);
    if (!channel)
        return -EBADF;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const Locked locked(mutex_);
            if (find(descriptor) == channel) {
                const ssize_t done = manager_.write(descriptor, bytes, size);
                notify();
                if (done != -EAGAIN)
                    return done;
                // close() forgets the channel before it closes: the descriptor is still ours.
                if ((fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0)
                    return -EAGAIN;
            } else if (!awaits_event(bytes, size)) {
                return -EBADF;
            }
            // Closed by another thread: at the kernel's device a call that waits goes on waiting,
            // also one that is woken by an event which is gone before it has looked. Programs end
            // with such a thread.
            seen = channel->turns.load();
        }
        if (const int error = await_change(channel->turns, seen))
            return error;
    }
}

int Device::close(int descriptor)
{
    {
        const Locked locked(mutex_);
        {
            const Locked table(table_mutex_);
            if (channels_.erase(descriptor) == 0) // who waits for an event goes on waiting: write()
                return -EBADF;
        }
        manager_.close(descriptor);
        notify();
    }
    return ::close(descriptor) != 0 ? -errno : 0;
}

void Device::set_device_port(const DevicePort &port)
{
    const Locked locked(mutex_);
    hosts_.set_device_port(port);
}

void Device::request(Link link, Port port, const Message &message)
{
    manager_.request(link, port, message);
}

void Device::message(Link link, const Message &message)
{
    manager_.message(link, message);
}

void Device::located(Link link, std::uint16_t lid)
{
    manager_.located(link, lid);
}

void Device::lost(Link link, int error)
{
    manager_.lost(link, error);
}

// The descriptors count what waits.
void Device::notify()
{
    for (const int descriptor : manager_.take_changed()) {
        Channel &channel = *channels_.at(descriptor);
        const std::size_t waiting = manager_.waiting(descriptor);
        for (; channel.shown > waiting; --channel.shown)
            take_one(descriptor);
        if (channel.shown == waiting)
            continue;
        add(descriptor, waiting - channel.shown);
        channel.shown = waiting;
        wake_all(channel.turns);
    }
}

} // namespace ntb::verbs::cm
