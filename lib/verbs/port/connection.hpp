// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_PORT_CONNECTION_HPP
#define NTB_VERBS_PORT_CONNECTION_HPP

#include <cstdint>
#include <memory>
#include <vector>

#include "port/port.hpp"
#include "port/stores.hpp"

struct ntbclient_conn;

namespace ntb::verbs
{

/// A port over a connection of the node daemon: messages of whole cache lines in its rings of
/// bytes.
class Connection final : public Port
{
public:
    /// Rings that hold four of the longest datagrams.
    static constexpr std::uint32_t least_ring = 32768;

    /// @param conn  open; it is the port's from now on, if one is returned
    /// @return NULL and errno: EMSGSIZE the rings are smaller than least_ring, ENOMEM
    static std::unique_ptr<Connection> create(ntbclient_conn *conn);
    ~Connection() override;

    std::uint32_t longest() const override { return longest_; }
    std::uint32_t suitable(std::uint32_t bytes) override;
    std::byte *reserve(std::uint32_t bytes) override;
    void commit(std::uint32_t bytes, const iovec *parts, int n) override;
    void publish() override;
    bool receive(Incoming &message) override;
    void release() override;
    bool alive() override { return !ended_; }
    bool reaches() override;
    void close() override;
    bool is_closed() const { return closed_; }
    bool arm(bool for_room) override;
    void disarm() override;
    int bell() const override;
    std::uint64_t left() const override;
    std::uint64_t grant(const std::shared_ptr<Segment> &segment, bool writable) override;
    Opening open(std::uint64_t number) override;

    /// What the daemon is to be asked, by a thread that may wait for it.
    struct Order {
        std::shared_ptr<Segment> segment; ///< to be granted; NULL: to be opened
        bool writable;
        std::uint64_t number; ///< by which it is opened
    };
    static constexpr std::size_t max_orders = 64;
    /// The oldest one. @retval false there is none
    bool take(Order &order);
    ntbclient_conn *conn() const { return conn_; }

private:
    Connection() = default;
    std::byte *place_elsewhere(std::uint32_t bytes) override;
    void shown(std::size_t whole) override;
    void show_otherwise(std::uint32_t bytes) override;
    bool find_marked(Incoming &message);
    bool find_counted(Incoming &message);
    void pass(std::size_t wanted, bool was_marked);
    bool look(Incoming &message);
    bool begin(const std::byte *at);
    bool collect();
    bool give_back();
    void note_taken(std::size_t bytes);
    void watch_count();
    bool make_room(std::uint32_t bytes);
    std::size_t turn_to_count();
    std::size_t put_counted();
    bool find_place(std::size_t wanted);
    bool put_long(std::size_t head, const iovec *parts, int n, std::size_t whole);
    void note_sent(ssize_t sent, std::size_t bytes);

    ntbclient_conn *conn_ = nullptr;
    std::uint32_t longest_ = 0;
    bool ended_ = false; // and nothing more has arrived
    bool closed_ = false;
    std::unique_ptr<std::byte[]> memory_;
    // Short messages that are not sent yet, lane_.kept bytes, then the one being filled in.
    std::byte *out_ = nullptr;
    std::size_t room_ = 0;   // at least so many bytes can be sent
    std::size_t padded_ = 0; // of what is filled in: behind so many there are zeroes; 0: unknown
    // What is received is found by its mark or by the peer's count, without a call, while it lies
    // in one piece in the ring, and is taken from the ring a quarter at a time, which is when the
    // peer learns of it anyway.
    const std::uint64_t *count_ = nullptr;
    // The message that is being received. It is taken apart in the ring if it lies there in one
    // piece; else a private copy is collected, in_.
    std::uint32_t bytes_ = 0;
    std::size_t wanted_ = 0; // of the ring; a line, until it is known
    std::size_t collected_ = 0;
    std::byte *in_ = nullptr;
    Stores stores_; // of long messages
    std::vector<Order> orders_;
};

} // namespace ntb::verbs

#endif
