// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTBMSG_ENDPOINT_HPP
#define NTBMSG_ENDPOINT_HPP

/// @file
/// ntbmsg_endpoint.h for C++20, as ntbmsg.hpp says.

#if __cplusplus < 202002L
#error "ntbmsg.hpp needs C++20 (-std=c++20); ntbmsg.h is for C and for all versions of C++"
#else

#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <ntbmsg_endpoint.h>
#include <rte_mbuf.h>

namespace ntbmsg
{

/// Owns one handle of the C interface and closes it by @p Close. Moves; never copies.
template <typename Handle, auto Close>
class Owner
{
public:
    /// Empty.
    constexpr Owner() = default;
    /// Takes ownership of a handle of the C interface.
    explicit constexpr Owner(Handle *handle) : handle_(handle) {}
    /// Takes ownership; @p other is empty then.
    Owner(Owner &&other) noexcept : handle_(other.release()) {}
    /// Closes its handle and takes the other; @p other is empty then.
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
    /// Releases ownership: the caller closes it.
    [[nodiscard]] Handle *release() { return std::exchange(handle_, nullptr); }
    /// Closes its handle and takes ownership of @p next.
    void reset(Handle *next = nullptr)
    {
        if (Handle *old = std::exchange(handle_, next); old != nullptr)
            Close(old);
    }

protected:
    /// Takes ownership of the handle that @p create returns through its argument. @return its
    /// result
    template <typename Create>
    int fill(Create create)
    {
        Handle *made = nullptr;
        const int rc = create(&made);
        if (rc == 0)
            reset(made);
        return rc;
    }
    /// Closes the handle. @return 0: it is empty now; else a negative errno: it still has the
    /// handle
    int close_handle()
    {
        const int rc = Close(handle_);
        if (rc == 0)
            handle_ = nullptr;
        return rc;
    }

    Handle *handle_ = nullptr; ///< NULL: empty
};

/// The length of a burst. @p size is at most 65535, as the C interface has it.
[[nodiscard]] inline uint16_t burst_length(std::size_t size)
{
    assert(size <= UINT16_MAX);
    return static_cast<uint16_t>(size);
}

/// Returns a message to its pool.
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

/// ntbmsg_endpoint_stats that knows its size.
struct EndpointStats : ntbmsg_endpoint_stats {
    EndpointStats() : ntbmsg_endpoint_stats{} { size = sizeof(ntbmsg_endpoint_stats); }
};

#ifdef ALLOW_EXPERIMENTAL_API
/// Owns rooms for messages that are built in place, at most @p Most, of what @p Way reserves them
/// on. What is not committed is aborted. Moves; never copies.
template <typename Way, std::size_t Most>
class Rooms
{
public:
    /// Empty.
    constexpr Rooms() = default;
    /// Takes the rooms; @p other is empty then.
    Rooms(Rooms &&other) noexcept { take(other); }
    /// Gives its rooms back and takes the others; @p other is empty then.
    Rooms &operator=(Rooms &&other) noexcept
    {
        if (this != &other) {
            abort();
            take(other);
        }
        return *this;
    }
    Rooms(const Rooms &) = delete;
    Rooms &operator=(const Rooms &) = delete;
    ~Rooms() { abort(); }

    /// Reserves up to @p n rooms, after it has aborted those that it had.
    /// @return number of rooms; else as ntbmsg_queue_reserve() and ntbmsg_channel_reserve()
    [[nodiscard]] int reserve(Way way, std::size_t n = Most)
    {
        assert(n <= Most && n <= UINT16_MAX);
        abort();
        const int got = way.reserve(rooms_, static_cast<uint16_t>(n));
        if (got <= 0)
            return got;
        way_ = way;
        left_ = static_cast<std::size_t>(got);
        first_ = 0;
        return got;
    }
    /// Rooms that are left.
    std::size_t size() const { return left_; }
    /// Room @p i of those that are left: to store to, never to load from.
    std::span<std::byte> operator[](std::size_t i) const
    {
        assert(i < left_);
        const ntbmsg_room &room = rooms_[first_ + i];
        return {static_cast<std::byte *>(room.address), room.bytes};
    }
    /// Sends the first @p length bytes of the rooms that are left as one message.
    /// @return 1; else as ntbmsg_queue_commit() and ntbmsg_channel_commit()
    [[nodiscard]] int commit(uint32_t length, const typename Way::With &with = {})
    {
        if (left_ == 0)
            return -EINVAL;
        const int sent = way_.commit(length, with);
        if (sent == 1)
            pass((length + rooms_[first_].bytes - 1) / rooms_[first_].bytes);
        else if (sent == -ECONNRESET || sent == -ESHUTDOWN)
            left_ = 0;
        return sent;
    }
    /// Gives back what is left.
    void abort()
    {
        if (left_ > 0)
            way_.abort();
        left_ = 0;
    }

private:
    void pass(std::size_t rooms)
    {
        first_ += rooms;
        left_ -= rooms;
    }
    void take(Rooms &other)
    {
        way_ = other.way_;
        first_ = 0;
        left_ = std::exchange(other.left_, std::size_t{0});
        for (std::size_t i = 0; i < left_; ++i)
            rooms_[i] = other.rooms_[other.first_ + i];
    }

    Way way_{};
    std::size_t first_ = 0;
    std::size_t left_ = 0;
    ntbmsg_room rooms_[Most];
};

/// A bare queue, for Rooms.
class Queue
{
public:
    /// What travels with a message.
    using With = ntbmsg_meta;
    /// None.
    constexpr Queue() = default;
    /// Of an open endpoint that outlives its rooms.
    Queue(ntbmsg_endpoint *endpoint, uint16_t queue) : endpoint_(endpoint), queue_(queue) {}
    /// ntbmsg_queue_reserve()
    int reserve(ntbmsg_room *rooms, uint16_t n)
    {
        return ntbmsg_queue_reserve(endpoint_, queue_, rooms, n);
    }
    /// ntbmsg_queue_commit()
    int commit(uint32_t length, const ntbmsg_meta &meta)
    {
        return ntbmsg_queue_commit(endpoint_, queue_, &length, &meta, 1);
    }
    /// ntbmsg_queue_abort()
    void abort() { ntbmsg_queue_abort(endpoint_, queue_); }

private:
    ntbmsg_endpoint *endpoint_ = nullptr;
    uint16_t queue_ = 0;
};
/// Rooms of a bare queue.
template <std::size_t Most = 1>
using QueueRooms = Rooms<Queue, Most>;
#endif

/// An open device.
class Endpoint : public Owner<ntbmsg_endpoint, ntbmsg_endpoint_close>
{
public:
    using Owner::Owner;

    /// ntbmsg_endpoint_open()
    [[nodiscard]] int open(const char *device, const ntbmsg_endpoint_options &options)
    {
        return fill(
            [&](ntbmsg_endpoint **made) { return ntbmsg_endpoint_open(device, &options, made); });
    }
    /// ntbmsg_endpoint_open() with the defaults
    [[nodiscard]] int open(const char *device) { return open(device, EndpointOptions()); }

    /// ntbmsg_endpoint_close(). @return 0: it is empty now; -EBUSY: call again
    int close() { return close_handle(); }

    /// ntbmsg_endpoint_close_linger(). @return as close()
    int close(uint32_t linger_ms, uint64_t *unconfirmed = nullptr)
    {
        const int rc = ntbmsg_endpoint_close_linger(handle_, linger_ms, unconfirmed);
        if (rc == 0)
            handle_ = nullptr;
        return rc;
    }

    /// ntbmsg_endpoint_wait_connected()
    [[nodiscard]] int wait_connected(uint32_t timeout_ms)
    {
        return ntbmsg_endpoint_wait_connected(handle_, timeout_ms);
    }
    /// ntbmsg_endpoint_link_state_get()
    enum ntbmsg_link_state link_state() const { return ntbmsg_endpoint_link_state_get(handle_); }
    /// ntbmsg_endpoint_link_reason_get()
    int link_reason(std::span<char> text) const
    {
        return ntbmsg_endpoint_link_reason_get(handle_, text.data(), text.size());
    }
    /// ntbmsg_endpoint_max_message()
    uint32_t max_message() const { return ntbmsg_endpoint_max_message(handle_); }
    /// ntbmsg_endpoint_pool()
    rte_mempool *pool() const { return ntbmsg_endpoint_pool(handle_); }
    /// ntbmsg_endpoint_event_poll()
    int event_poll(ntbmsg_event &event) { return ntbmsg_endpoint_event_poll(handle_, &event); }
    /// ntbmsg_endpoint_stats_get()
    int stats(EndpointStats &stats) const { return ntbmsg_endpoint_stats_get(handle_, &stats); }

    /// ntbmsg_queue_send_burst(): the first `return value` of @p mbufs now belong to the library.
    int send_burst(uint16_t queue, std::span<rte_mbuf *> mbufs)
    {
        return ntbmsg_queue_send_burst(handle_, queue, mbufs.data(), nullptr,
                                       burst_length(mbufs.size()));
    }
    /// ntbmsg_queue_send_burst() with metadata, as many as @p mbufs.
    int send_burst(uint16_t queue, std::span<rte_mbuf *> mbufs, std::span<const ntbmsg_meta> meta)
    {
        assert(meta.size() >= mbufs.size());
        return ntbmsg_queue_send_burst(handle_, queue, mbufs.data(), meta.data(),
                                       burst_length(mbufs.size()));
    }
    /// ntbmsg_queue_recv_burst(): the first `return value` of @p mbufs are the caller's to free.
    int recv_burst(uint16_t queue, std::span<rte_mbuf *> mbufs)
    {
        return ntbmsg_queue_recv_burst(handle_, queue, mbufs.data(), nullptr,
                                       burst_length(mbufs.size()));
    }
    /// ntbmsg_queue_recv_burst() with metadata, room for as many as @p mbufs.
    int recv_burst(uint16_t queue, std::span<rte_mbuf *> mbufs, std::span<ntbmsg_meta> meta)
    {
        assert(meta.size() >= mbufs.size());
        return ntbmsg_queue_recv_burst(handle_, queue, mbufs.data(), meta.data(),
                                       burst_length(mbufs.size()));
    }

#ifdef ALLOW_EXPERIMENTAL_API
    /// ntbmsg_queue_burst_get(): @p burst is valid as long as the endpoint is open.
    int burst(uint16_t queue, ntbmsg_queue_burst &burst) const
    {
        return ntbmsg_queue_burst_get(handle_, queue, &burst);
    }
    /// Bare queue @p index, for QueueRooms.
    Queue queue(uint16_t index) const
    {
        return Queue(handle_, index);
    }
#endif

    /// ntbmsg_queue_unconfirmed()
    int unconfirmed(uint16_t queue, uint32_t &count) const
    {
        return ntbmsg_queue_unconfirmed(handle_, queue, &count);
    }
    /// ntbmsg_queue_flush()
    [[nodiscard]] int flush(uint16_t queue, uint32_t timeout_ms)
    {
        return ntbmsg_queue_flush(handle_, queue, timeout_ms);
    }

    /// Sends one message. @return 1: @p message is empty now; else as ntbmsg_queue_send_burst()
    int send(uint16_t queue, Message &message, const ntbmsg_meta &meta = {})
    {
        rte_mbuf *mbuf = message.get();
        const int sent = ntbmsg_queue_send_burst(handle_, queue, &mbuf, &meta, 1);
        if (sent == 1)
            static_cast<void>(message.release());
        return sent;
    }
    /// Receives one message. @return 1 and @p message; else as ntbmsg_queue_recv_burst()
    int recv(uint16_t queue, Message &message, ntbmsg_meta *meta = nullptr)
    {
        rte_mbuf *mbuf = nullptr;
        const int got = ntbmsg_queue_recv_burst(handle_, queue, &mbuf, meta, 1);
        if (got == 1)
            message.reset(mbuf);
        return got;
    }
};

} // namespace ntbmsg

#endif
#endif
