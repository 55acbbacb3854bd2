// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTBMSG_HPP
#define NTBMSG_HPP

/// @file
/// ntbmsg.h for C++20: owners that move and close themselves, spans for bursts. Everything is
/// inline and calls the C function of the same name; what that takes, returns and promises is said
/// there. No exception is thrown and no type information needed: a call that can fail returns 0 or
/// a negative errno, a burst how many messages it took. A call costs what the C call costs; the
/// test zero-cost compares them instruction by instruction.
///
/// An owner is empty at first; open(), connect() and the like fill it, and what it had before is
/// closed only when they succeed. Using an empty owner is what using NULL is in C. Owners must go
/// before what they stand on: messages and channels before their endpoint.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <ntbmsg.h>
#include <rte_mbuf.h>

namespace ntbmsg
{

/// Owns one handle of the C interface and gives it back by @p Close. Moves; never copies.
template <typename Handle, auto Close>
class Owner
{
public:
    /// Empty.
    constexpr Owner() = default;
    /// Takes over what the C interface gave.
    explicit constexpr Owner(Handle *handle) : handle_(handle) {}
    /// Takes over; @p other is empty then.
    Owner(Owner &&other) noexcept : handle_(other.release()) {}
    /// Closes what it has and takes over; @p other is empty then.
    Owner &operator=(Owner &&other) noexcept
    {
        reset(other.release());
        return *this;
    }
    Owner(const Owner &) = delete;
    Owner &operator=(const Owner &) = delete;
    ~Owner() { reset(); }

    /// The handle for calls of the C interface; NULL: empty.
    Handle *get() const { return handle_; }
    /// Whether there is one.
    explicit operator bool() const { return handle_ != nullptr; }
    /// Gives it away: the caller closes it.
    [[nodiscard]] Handle *release() { return std::exchange(handle_, nullptr); }
    /// Closes it and takes @p next over.
    void reset(Handle *next = nullptr)
    {
        if (Handle *old = std::exchange(handle_, next); old != nullptr)
            Close(old);
    }

protected:
    /// For members that close by themselves, to hear whether it worked.
    Handle *handle_ = nullptr;
};

/// The length of a burst. @p size is at most 65535, as the C interface has it.
[[nodiscard]] inline uint16_t burst_length(std::size_t size)
{
    assert(size <= UINT16_MAX);
    return static_cast<uint16_t>(size);
}

/// Gives a message back to its pool.
inline void free_message(rte_mbuf *message)
{
    rte_pktmbuf_free(message);
}

/// Owns one message: an mbuf, or a chain of them. For single messages; bursts are spans of mbufs.
class Message : public Owner<rte_mbuf, free_message>
{
public:
    using Owner::Owner;

    /// Takes an mbuf out of a pool. Empty: the pool has none.
    static Message from(rte_mempool *pool) { return Message(rte_pktmbuf_alloc(pool)); }

    /// Makes room for @p bytes more at the end. @return that room; empty: the mbuf has not so much
    std::span<std::byte> append(uint16_t bytes)
    {
        char *room = rte_pktmbuf_append(get(), bytes);
        return {reinterpret_cast<std::byte *>(room), room != nullptr ? bytes : std::size_t{0}};
    }

    /// The data of the first mbuf, which is all of them unless the message is a chain.
    std::span<std::byte> data() const
    {
        return {rte_pktmbuf_mtod(get(), std::byte *), rte_pktmbuf_data_len(get())};
    }

    /// Bytes of the whole message.
    uint32_t size() const { return rte_pktmbuf_pkt_len(get()); }
};

/// ntbmsg_endpoint_options with the defaults filled in.
struct EndpointOptions : ntbmsg_endpoint_options {
    EndpointOptions() { ntbmsg_endpoint_options_init(this); }
};

/// ntbmsg_stats that knows its size.
struct Stats : ntbmsg_stats {
    Stats() : ntbmsg_stats{} { size = sizeof(ntbmsg_stats); }
};

/// An open device.
class Endpoint : public Owner<ntbmsg_endpoint, ntbmsg_endpoint_close>
{
public:
    using Owner::Owner;

    /// ntbmsg_endpoint_open()
    [[nodiscard]] int open(const char *device, const ntbmsg_endpoint_options &options)
    {
        ntbmsg_endpoint *opened = nullptr;
        const int rc = ntbmsg_endpoint_open(device, &options, &opened);
        if (rc == 0)
            reset(opened);
        return rc;
    }
    /// ntbmsg_endpoint_open() with the defaults
    [[nodiscard]] int open(const char *device) { return open(device, EndpointOptions()); }

    /// ntbmsg_endpoint_close(). @return 0: it is empty now; -EBUSY: call again
    int close()
    {
        const int rc = ntbmsg_endpoint_close(handle_);
        if (rc == 0)
            handle_ = nullptr;
        return rc;
    }

    /// ntbmsg_wait_connected()
    [[nodiscard]] int wait_connected(uint32_t timeout_ms)
    {
        return ntbmsg_wait_connected(handle_, timeout_ms);
    }
    /// ntbmsg_link_state()
    enum ntbmsg_link_state link_state() const { return ntbmsg_link_state(handle_); }
    /// ntbmsg_link_why()
    int link_why(std::span<char> text) const
    {
        return ntbmsg_link_why(handle_, text.data(), text.size());
    }
    /// ntbmsg_max_message()
    uint32_t max_message() const { return ntbmsg_max_message(handle_); }
    /// ntbmsg_pool()
    rte_mempool *pool() const { return ntbmsg_pool(handle_); }
    /// ntbmsg_event_poll()
    int event_poll(ntbmsg_event_kind &event) { return ntbmsg_event_poll(handle_, &event); }
    /// ntbmsg_stats_get()
    int stats(Stats &stats) const { return ntbmsg_stats_get(handle_, &stats); }

    /// ntbmsg_send_burst(): the first `return value` of @p mbufs now belong to the library.
    int send_burst(uint16_t queue, std::span<rte_mbuf *> mbufs)
    {
        return ntbmsg_send_burst(handle_, queue, mbufs.data(), nullptr, burst_length(mbufs.size()));
    }
    /// ntbmsg_send_burst() with metadata, as many as @p mbufs.
    int send_burst(uint16_t queue, std::span<rte_mbuf *> mbufs, std::span<const ntbmsg_meta> meta)
    {
        assert(meta.size() >= mbufs.size());
        return ntbmsg_send_burst(handle_, queue, mbufs.data(), meta.data(),
                                 burst_length(mbufs.size()));
    }
    /// ntbmsg_recv_burst(): the first `return value` of @p mbufs are the caller's to free.
    int recv_burst(uint16_t queue, std::span<rte_mbuf *> mbufs)
    {
        return ntbmsg_recv_burst(handle_, queue, mbufs.data(), nullptr, burst_length(mbufs.size()));
    }
    /// ntbmsg_recv_burst() with metadata, room for as many as @p mbufs.
    int recv_burst(uint16_t queue, std::span<rte_mbuf *> mbufs, std::span<ntbmsg_meta> meta)
    {
        assert(meta.size() >= mbufs.size());
        return ntbmsg_recv_burst(handle_, queue, mbufs.data(), meta.data(),
                                 burst_length(mbufs.size()));
    }

    /// Sends one message. @return 1: @p message is empty now; else as ntbmsg_send_burst()
    int send(uint16_t queue, Message &message, const ntbmsg_meta &meta = {})
    {
        rte_mbuf *mbuf = message.get();
        const int sent = ntbmsg_send_burst(handle_, queue, &mbuf, &meta, 1);
        if (sent == 1)
            static_cast<void>(message.release());
        return sent;
    }
    /// Receives one message. @return 1 and @p message; else as ntbmsg_recv_burst()
    int recv(uint16_t queue, Message &message, ntbmsg_meta *meta = nullptr)
    {
        rte_mbuf *mbuf = nullptr;
        const int got = ntbmsg_recv_burst(handle_, queue, &mbuf, meta, 1);
        if (got == 1)
            message.reset(mbuf);
        return got;
    }
};

class Channel;

/// A queue pair that carries channels. Belongs to its endpoint; copies are the same worker.
class Worker
{
public:
    constexpr Worker() = default;
    /// As the C interface gave it.
    explicit constexpr Worker(ntbmsg_worker *worker) : worker_(worker) {}
    /// ntbmsg_worker_get()
    static Worker of(const Endpoint &endpoint, uint16_t index)
    {
        return Worker(ntbmsg_worker_get(endpoint.get(), index));
    }
    /// The handle for calls of the C interface.
    ntbmsg_worker *get() const { return worker_; }
    /// Whether there is one.
    explicit operator bool() const { return worker_ != nullptr; }

    /// ntbmsg_worker_poll()
    int poll() { return ntbmsg_worker_poll(worker_); }
    /// ntbmsg_rx_pool_create(); RxPool owns one.
    int create_rx_pool(size_t bytes, rte_mempool **out)
    {
        return ntbmsg_rx_pool_create(worker_, bytes, out);
    }
    /// ntbmsg_rx_pool_destroy()
    int destroy_rx_pool(rte_mempool *pool) { return ntbmsg_rx_pool_destroy(worker_, pool); }
    /// ntbmsg_worker_dma_set()
    int set_dma(const ntbmsg_dma_options *options)
    {
        return ntbmsg_worker_dma_set(worker_, options);
    }
    /// ntbmsg_worker_event_fd()
    int event_fd() { return ntbmsg_worker_event_fd(worker_); }
    /// ntbmsg_worker_arm()
    int arm() { return ntbmsg_worker_arm(worker_); }
    /// ntbmsg_worker_disarm()
    int disarm() { return ntbmsg_worker_disarm(worker_); }

private:
    ntbmsg_worker *worker_ = nullptr;
};

/// ntbmsg_dma_options with the defaults filled in.
struct DmaOptions : ntbmsg_dma_options {
    DmaOptions() { ntbmsg_dma_options_init(this); }
};

/// Receive memory for one channel, or a few. Must go after the channels that have it and before
/// their endpoint; what is still in use then stays until that closes.
class RxPool
{
public:
    /// Empty.
    RxPool() = default;
    /// Takes over; @p other is empty then.
    RxPool(RxPool &&other) noexcept
        : worker_(other.worker_), pool_(std::exchange(other.pool_, nullptr))
    {
    }
    /// Destroys what it has and takes over; @p other is empty then.
    RxPool &operator=(RxPool &&other) noexcept
    {
        if (this != &other) {
            destroy();
            worker_ = other.worker_;
            pool_ = std::exchange(other.pool_, nullptr);
        }
        return *this;
    }
    RxPool(const RxPool &) = delete;
    RxPool &operator=(const RxPool &) = delete;
    ~RxPool() { destroy(); }

    /// The pool, for ntbmsg_channel_options::rx_pool; NULL: empty.
    rte_mempool *get() const { return pool_; }
    /// Whether there is one.
    explicit operator bool() const { return pool_ != nullptr; }

    /// ntbmsg_rx_pool_create()
    [[nodiscard]] int create(Worker worker, std::size_t bytes)
    {
        rte_mempool *made = nullptr;
        const int rc = worker.create_rx_pool(bytes, &made);
        if (rc == 0) {
            destroy();
            worker_ = worker;
            pool_ = made;
        }
        return rc;
    }
    /// ntbmsg_rx_pool_destroy(). @return 0: it is empty now; -EBUSY: call again
    int destroy()
    {
        const int rc = pool_ != nullptr ? worker_.destroy_rx_pool(pool_) : 0;
        if (rc == 0)
            pool_ = nullptr;
        return rc;
    }

private:
    Worker worker_;
    rte_mempool *pool_ = nullptr;
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

    /// ntbmsg_connect()
    [[nodiscard]] int connect(Worker worker, uint16_t port, const ntbmsg_channel_options &options)
    {
        ntbmsg_channel *made = nullptr;
        const int rc = ntbmsg_connect(worker.get(), port, &options, &made);
        if (rc == 0)
            reset(made);
        return rc;
    }
    /// ntbmsg_connect() with the defaults
    [[nodiscard]] int connect(Worker worker, uint16_t port)
    {
        return connect(worker, port, ChannelOptions());
    }
    /// ntbmsg_accept()
    [[nodiscard]] int accept(const ntbmsg_request &request, const ntbmsg_channel_options &options)
    {
        ntbmsg_channel *made = nullptr;
        const int rc = ntbmsg_accept(&request, &options, &made);
        if (rc == 0)
            reset(made);
        return rc;
    }
    /// ntbmsg_accept() with the defaults
    [[nodiscard]] int accept(const ntbmsg_request &request)
    {
        return accept(request, ChannelOptions());
    }

    /// ntbmsg_channel_wait_open()
    [[nodiscard]] int wait_open(uint32_t timeout_ms)
    {
        return ntbmsg_channel_wait_open(handle_, timeout_ms);
    }
    /// ntbmsg_channel_state()
    enum ntbmsg_channel_state state() const { return ntbmsg_channel_state(handle_); }
    /// ntbmsg_channel_info_get()
    int info(ChannelInfo &info) const { return ntbmsg_channel_info_get(handle_, &info); }
    /// ntbmsg_channel_shutdown()
    int shutdown() { return ntbmsg_channel_shutdown(handle_); }
    /// ntbmsg_channel_reset(); the owner keeps its handle, as the C interface does.
    int abort(uint32_t reason) { return ntbmsg_channel_reset(handle_, reason); }

    /// ntbmsg_channel_send_burst(): the first `return value` of @p mbufs now belong to the library.
    int send_burst(std::span<rte_mbuf *> mbufs)
    {
        return ntbmsg_channel_send_burst(handle_, mbufs.data(), nullptr,
                                         burst_length(mbufs.size()));
    }
    /// ntbmsg_channel_send_burst() with a word for each message.
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
    /// ntbmsg_channel_recv_burst() with room for the word of each message.
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

    /// ntbmsg_post_burst()
    int post_burst(std::span<const ntbmsg_work> works)
    {
        return ntbmsg_post_burst(handle_, works.data(), burst_length(works.size()));
    }
};

/// A port of this host.
class Listener : public Owner<ntbmsg_listener, ntbmsg_listener_close>
{
public:
    using Owner::Owner;

    /// ntbmsg_listen()
    [[nodiscard]] int listen(uint16_t port, uint32_t backlog = 0)
    {
        ntbmsg_listener *made = nullptr;
        const int rc = ntbmsg_listen(port, backlog, &made);
        if (rc == 0)
            reset(made);
        return rc;
    }
    /// ntbmsg_listener_poll()
    int poll(Worker worker, ntbmsg_request &request)
    {
        return ntbmsg_listener_poll(handle_, worker.get(), &request);
    }
};

/// ntbmsg_reject()
inline int reject(const ntbmsg_request &request, uint32_t reason,
                  std::span<const std::byte> data = {})
{
    return ntbmsg_reject(&request, reason, data.data(), static_cast<uint32_t>(data.size()));
}

/// Tells which of many channels have something. Must go after its channels.
class PollSet : public Owner<ntbmsg_poll_set, ntbmsg_poll_set_destroy>
{
public:
    using Owner::Owner;

    /// ntbmsg_poll_set_create()
    [[nodiscard]] int create(Worker worker = Worker())
    {
        ntbmsg_poll_set *made = nullptr;
        const int rc = ntbmsg_poll_set_create(worker.get(), &made);
        if (rc == 0)
            reset(made);
        return rc;
    }
    /// ntbmsg_poll_set_destroy(). @return 0: it is empty now; -EBUSY: call again
    int destroy()
    {
        const int rc = ntbmsg_poll_set_destroy(handle_);
        if (rc == 0)
            handle_ = nullptr;
        return rc;
    }
    /// ntbmsg_poll()
    int poll(std::span<ntbmsg_ready> ready)
    {
        return ntbmsg_poll(handle_, ready.data(), burst_length(ready.size()));
    }
};

/// What became of operations. Must go after the channels that have it.
class CompletionQueue : public Owner<ntbmsg_cq, ntbmsg_cq_destroy>
{
public:
    using Owner::Owner;

    /// ntbmsg_cq_create()
    [[nodiscard]] int create(uint32_t entries, ntbmsg_completion_fn fn = nullptr,
                             void *arg = nullptr)
    {
        ntbmsg_cq *made = nullptr;
        const int rc = ntbmsg_cq_create(entries, fn, arg, &made);
        if (rc == 0)
            reset(made);
        return rc;
    }
    /// ntbmsg_cq_destroy(). @return 0: it is empty now; -EBUSY: call again
    int destroy()
    {
        const int rc = ntbmsg_cq_destroy(handle_);
        if (rc == 0)
            handle_ = nullptr;
        return rc;
    }
    /// ntbmsg_cq_poll()
    int poll(std::span<ntbmsg_completion> completions)
    {
        return ntbmsg_cq_poll(handle_, completions.data(), burst_length(completions.size()));
    }
    /// ntbmsg_cq_event_fd()
    int event_fd() { return ntbmsg_cq_event_fd(handle_); }
    /// ntbmsg_cq_arm()
    int arm() { return ntbmsg_cq_arm(handle_); }
};

/// ntbmsg_region_info that knows its size.
struct RegionInfo : ntbmsg_region_info {
    RegionInfo() : ntbmsg_region_info{} { size = sizeof(ntbmsg_region_info); }
};

/// Memory that the peer may reach. Going out of scope revokes it.
class Region : public Owner<ntbmsg_region, ntbmsg_region_revoke>
{
public:
    using Owner::Owner;

    /// ntbmsg_region_alloc()
    [[nodiscard]] int alloc(const Endpoint &endpoint, std::size_t bytes, uint32_t rights)
    {
        ntbmsg_region *made = nullptr;
        const int rc = ntbmsg_region_alloc(endpoint.get(), bytes, rights, &made);
        if (rc == 0)
            reset(made);
        return rc;
    }
    /// ntbmsg_region_register()
    [[nodiscard]] int enroll(const Endpoint &endpoint, std::span<std::byte> memory, uint32_t rights)
    {
        ntbmsg_region *made = nullptr;
        const int rc =
            ntbmsg_region_register(endpoint.get(), memory.data(), memory.size(), rights, &made);
        if (rc == 0)
            reset(made);
        return rc;
    }
    /// ntbmsg_region_revoke(). @return 0: it is empty now; -EIO: call again
    int revoke()
    {
        const int rc = ntbmsg_region_revoke(handle_);
        if (rc == 0)
            handle_ = nullptr;
        return rc;
    }
    /// ntbmsg_region_info_get()
    int info(RegionInfo &info) const { return ntbmsg_region_info_get(handle_, &info); }
    /// The memory itself; empty: there is no region.
    std::span<std::byte> memory() const
    {
        RegionInfo known;
        if (info(known) != 0)
            return {};
        return {static_cast<std::byte *>(known.address), static_cast<std::size_t>(known.bytes)};
    }
    /// ntbmsg_region_token_get()
    int token(ntbmsg_region_token &token) const { return ntbmsg_region_token_get(handle_, &token); }
};

/// A region of the peer. Must go before its channel.
class Remote : public Owner<ntbmsg_remote, ntbmsg_remote_close>
{
public:
    using Owner::Owner;

    /// ntbmsg_remote_open()
    [[nodiscard]] int open(const Channel &channel, const ntbmsg_region_token &token)
    {
        ntbmsg_remote *made = nullptr;
        const int rc = ntbmsg_remote_open(channel.get(), &token, &made);
        if (rc == 0)
            reset(made);
        return rc;
    }
};

} // namespace ntbmsg

#endif
