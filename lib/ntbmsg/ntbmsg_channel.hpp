// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTBMSG_CHANNEL_HPP
#define NTBMSG_CHANNEL_HPP

/// @file
/// ntbmsg_channel.h for C++20, as ntbmsg.hpp says.

#include <ntbmsg_endpoint.hpp>
#if __cplusplus >= 202002L

#include <ntbmsg_channel.h>
#ifdef ALLOW_EXPERIMENTAL_API
#include <ntbmsg_rma.h>
#endif

namespace ntbmsg
{

/// A queue pair that carries channels. Belongs to its endpoint; copies are the same worker.
class Worker
{
public:
    constexpr Worker() = default;
    /// As the C interface gave it.
    explicit constexpr Worker(ntbmsg_worker *worker) : worker_(worker) {}
    /// ntbmsg_endpoint_worker()
    static Worker of(const Endpoint &endpoint, uint16_t index)
    {
        return Worker(ntbmsg_endpoint_worker(endpoint.get(), index));
    }
    /// The handle for calls of the C interface.
    ntbmsg_worker *get() const { return worker_; }
    /// Whether there is one.
    explicit operator bool() const { return worker_ != nullptr; }

    /// ntbmsg_worker_poll()
    int poll() { return ntbmsg_worker_poll(worker_); }
#ifdef ALLOW_EXPERIMENTAL_API
    /// ntbmsg_worker_event_fd()
    int event_fd()
    {
        return ntbmsg_worker_event_fd(worker_);
    }
    /// ntbmsg_worker_arm()
    int arm()
    {
        return ntbmsg_worker_arm(worker_);
    }
    /// ntbmsg_worker_disarm()
    int disarm()
    {
        return ntbmsg_worker_disarm(worker_);
    }
#endif

private:
    ntbmsg_worker *worker_ = nullptr;
};

/// ntbmsg_channel_options with the defaults filled in.
struct ChannelOptions : ntbmsg_channel_options {
    ChannelOptions() { ntbmsg_channel_options_init(this); }
    /// Sends @p bytes along with the connect or the accept.
    void set_private(std::span<const std::byte> bytes)
    {
        private_data = bytes.data();
        private_bytes = static_cast<uint32_t>(bytes.size());
    }
};

/// ntbmsg_channel_info that knows its size.
struct ChannelInfo : ntbmsg_channel_info {
    ChannelInfo() : ntbmsg_channel_info{} { size = sizeof(ntbmsg_channel_info); }
};

/// A connection to a port of the peer host.
class Channel : public Owner<ntbmsg_channel, ntbmsg_channel_close>
{
public:
    using Owner::Owner;

    /// ntbmsg_channel_connect()
    [[nodiscard]] int connect(Worker worker, uint16_t port, const ntbmsg_channel_options &options)
    {
        return fill([&](ntbmsg_channel **made) {
            return ntbmsg_channel_connect(worker.get(), port, &options, made);
        });
    }
    /// ntbmsg_channel_connect() with the defaults
    [[nodiscard]] int connect(Worker worker, uint16_t port)
    {
        return connect(worker, port, ChannelOptions());
    }
    /// ntbmsg_channel_accept()
    [[nodiscard]] int accept(const ntbmsg_request &request, const ntbmsg_channel_options &options)
    {
        return fill(
            [&](ntbmsg_channel **made) { return ntbmsg_channel_accept(&request, &options, made); });
    }
    /// ntbmsg_channel_accept() with the defaults
    [[nodiscard]] int accept(const ntbmsg_request &request)
    {
        return accept(request, ChannelOptions());
    }

    /// ntbmsg_channel_wait_open()
    [[nodiscard]] int wait_open(uint32_t timeout_ms)
    {
        return ntbmsg_channel_wait_open(handle_, timeout_ms);
    }
    /// ntbmsg_channel_state_get()
    enum ntbmsg_channel_state state() const { return ntbmsg_channel_state_get(handle_); }
    /// ntbmsg_channel_info_get()
    int info(ChannelInfo &info) const { return ntbmsg_channel_info_get(handle_, &info); }
    /// ntbmsg_channel_shutdown()
    int shutdown() { return ntbmsg_channel_shutdown(handle_); }
    /// ntbmsg_channel_flush()
    [[nodiscard]] int flush(uint32_t timeout_ms)
    {
        return ntbmsg_channel_flush(handle_, timeout_ms);
    }
    /// ntbmsg_channel_close_linger(); it is empty then.
    void close(uint32_t linger_ms, uint64_t *unconfirmed = nullptr)
    {
        ntbmsg_channel_close_linger(release(), linger_ms, unconfirmed);
    }
    /// ntbmsg_channel_reset(); the owner keeps its handle, as the C interface does.
    int abort(int32_t reason) { return ntbmsg_channel_reset(handle_, reason); }

    /// ntbmsg_channel_send_burst(): the first `return value` of @p mbufs now belong to the library.
    int send_burst(std::span<rte_mbuf *> mbufs)
    {
        return ntbmsg_channel_send_burst(handle_, mbufs.data(), nullptr,
                                         burst_length(mbufs.size()));
    }
    /// ntbmsg_channel_send_burst() with immediate data for each message.
    int send_burst(std::span<rte_mbuf *> mbufs, std::span<const uint32_t> imm)
    {
        assert(imm.size() >= mbufs.size());
        return ntbmsg_channel_send_burst(handle_, mbufs.data(), imm.data(),
                                         burst_length(mbufs.size()));
    }
    /// ntbmsg_channel_recv_burst(): the first `return value` of @p mbufs are the caller's to free.
    int recv_burst(std::span<rte_mbuf *> mbufs)
    {
        return ntbmsg_channel_recv_burst(handle_, mbufs.data(), nullptr,
                                         burst_length(mbufs.size()));
    }
    /// ntbmsg_channel_recv_burst() with room for the immediate data of each message.
    int recv_burst(std::span<rte_mbuf *> mbufs, std::span<uint32_t> imm)
    {
        assert(imm.size() >= mbufs.size());
        return ntbmsg_channel_recv_burst(handle_, mbufs.data(), imm.data(),
                                         burst_length(mbufs.size()));
    }

    /// Sends one message. @return 1: @p message is empty now; else as ntbmsg_channel_send_burst()
    int send(Message &message, uint32_t imm = 0)
    {
        rte_mbuf *mbuf = message.get();
        const int sent = ntbmsg_channel_send_burst(handle_, &mbuf, &imm, 1);
        if (sent == 1)
            static_cast<void>(message.release());
        return sent;
    }
    /// Receives one message. @return 1 and @p message; else as ntbmsg_channel_recv_burst()
    int recv(Message &message, uint32_t *imm = nullptr)
    {
        rte_mbuf *mbuf = nullptr;
        const int got = ntbmsg_channel_recv_burst(handle_, &mbuf, imm, 1);
        if (got == 1)
            message.reset(mbuf);
        return got;
    }

#ifdef ALLOW_EXPERIMENTAL_API
    /// ntbmsg_channel_post_burst()
    int post_burst(std::span<const ntbmsg_work> works)
    {
        return ntbmsg_channel_post_burst(handle_, works.data(), burst_length(works.size()));
    }
#endif
};

#ifdef ALLOW_EXPERIMENTAL_API
/// An open channel, for Rooms.
class ChannelWay
{
public:
    /// What travels with a message.
    using With = uint32_t;
    /// None.
    constexpr ChannelWay() = default;
    /// Of a channel that is closed after its rooms.
    explicit ChannelWay(const Channel &channel) : channel_(channel.get()) {}
    /// ntbmsg_channel_reserve()
    int reserve(ntbmsg_room *rooms, uint16_t n)
    {
        return ntbmsg_channel_reserve(channel_, rooms, n);
    }
    /// ntbmsg_channel_commit()
    int commit(uint32_t length, const uint32_t &imm)
    {
        return ntbmsg_channel_commit(channel_, &length, &imm, 1);
    }
    /// ntbmsg_channel_abort()
    void abort() { ntbmsg_channel_abort(channel_); }

private:
    ntbmsg_channel *channel_ = nullptr;
};
/// Rooms of a channel.
template <std::size_t Most = 1>
using ChannelRooms = Rooms<ChannelWay, Most>;
#endif

/// A port of this host.
class Listener : public Owner<ntbmsg_listener, ntbmsg_listener_close>
{
public:
    using Owner::Owner;

    /// ntbmsg_listener_open()
    [[nodiscard]] int open(uint16_t port, uint32_t backlog = 0)
    {
        return fill(
            [&](ntbmsg_listener **made) { return ntbmsg_listener_open(port, backlog, made); });
    }
    /// ntbmsg_listener_poll()
    int poll(Worker worker, ntbmsg_request &request)
    {
        return ntbmsg_listener_poll(handle_, worker.get(), &request);
    }
};

/// ntbmsg_request_reject()
inline int reject(const ntbmsg_request &request, int32_t reason,
                  std::span<const std::byte> data = {})
{
    return ntbmsg_request_reject(&request, reason, data.data(), static_cast<uint32_t>(data.size()));
}

/// Reports which of many channels have events. Must be destroyed after its channels.
class PollSet : public Owner<ntbmsg_poll_set, ntbmsg_poll_set_destroy>
{
public:
    using Owner::Owner;

    /// ntbmsg_poll_set_create()
    [[nodiscard]] int create(Worker worker = Worker())
    {
        return fill(
            [&](ntbmsg_poll_set **made) { return ntbmsg_poll_set_create(worker.get(), made); });
    }
    /// ntbmsg_poll_set_destroy(). @return 0: it is empty now; -EBUSY: call again
    int destroy() { return close_handle(); }
    /// ntbmsg_poll_set_poll()
    int poll(std::span<ntbmsg_ready> ready)
    {
        return ntbmsg_poll_set_poll(handle_, ready.data(), burst_length(ready.size()));
    }
};

} // namespace ntbmsg

#endif
#endif
