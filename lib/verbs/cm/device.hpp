// SPDX-License-Identifier: BSD-3-Clause
// /dev/infiniband/rdma_cm of a process: descriptors, and the mutex around all below them.
#ifndef NTB_VERBS_CM_DEVICE_HPP
#define NTB_VERBS_CM_DEVICE_HPP

#include <atomic>
#include <map>
#include <memory>

#include "cm/hosts.hpp"
#include "cm/network.hpp"

namespace ntb::verbs::cm
{

/// Any thread may make any call.
class Device final : private Audience
{
public:
    explicit Device(Hosts &hosts) : hosts_(hosts), network_(mutex_), manager_(network_, hosts) {}
    ~Device() override;
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    /// Attaches to the daemon, and begins to serve.
    /// @return 0 or a negative errno of ntbclient_attach()
    int start(const char *socket);

    /// @param flags  of open(): O_CLOEXEC and O_NONBLOCK count
    /// @return a descriptor that is readable while an event waits, or a negative errno
    int open(int flags);
    bool owns(int descriptor) { return find(descriptor) != nullptr; }
    /// @return bytes, or a negative errno; blocks for an event, unless the descriptor does not.
    /// -EBADF: it is not ours
    ssize_t write(int descriptor, const void *bytes, std::size_t size);
    /// Closes the descriptor as well. @return 0 or a negative errno
    int close(int descriptor);
    void set_device_port(const DevicePort &port);

private:
    struct Channel {
        // A number that changes with each event: who waits for one sleeps on it.
        std::atomic<std::uint32_t> turns{0};
        std::size_t shown = 0; // events that the descriptor counts
    };

    std::shared_ptr<Channel> find(int descriptor);
    void request(Link link, Port port, const Message &message) override;
    void message(Link link, const Message &message) override;
    void located(Link link, std::uint16_t lid) override;
    void lost(Link link, int error) override;
    void notify() override;

    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    Hosts &hosts_;
    Network network_;
    Manager manager_;
    // Changed with both mutexes held, read with one. Nothing waits under the second: a call has
    // found its channel when it begins, as in the kernel, whatever the daemon takes for another's.
    pthread_mutex_t table_mutex_ = PTHREAD_MUTEX_INITIALIZER;
    std::map<int, std::shared_ptr<Channel>> channels_;
};

} // namespace ntb::verbs::cm

#endif
