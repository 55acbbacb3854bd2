// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_PORT_CONNECTION_HPP
#define NTB_VERBS_PORT_CONNECTION_HPP

#include <cstdint>
#include <memory>

#include "port/door.hpp"
#include "port/port.hpp"

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
    std::byte *reserve(std::uint32_t bytes) override;
    void commit(std::uint32_t bytes, const iovec *parts, int n) override;
    void publish() override;
    bool receive(Incoming &message) override;
    void release() override;
    bool alive() override { return !ended_; }
    void close() override;
    bool is_closed() const { return closed_; }
    bool arm(bool for_room) override;
    void disarm() override;
    int bell() const override;
    /// Of this process and the peer: memory is granted if both are of one machine.
    void set_doors(Door &own, const DoorName &peer);
    std::uint64_t grant(const Segment &segment, bool writable) override;
    std::unique_ptr<Segment> open(std::uint64_t number, bool &writable) override;

private:
    Connection() = default;
    bool begin(const std::byte *at);
    void collect();
    void send(const iovec *places, int n, std::size_t bytes);

    ntbclient_conn *conn_ = nullptr;
    std::uint32_t longest_ = 0;
    bool ended_ = false; // and nothing more has arrived
    bool closed_ = false;
    std::size_t room_ = 0; // at least so many bytes can be sent
    std::unique_ptr<std::byte[]> memory_;
    std::byte *out_ = nullptr; // short messages that are not sent yet, then the one being filled in
    std::size_t kept_ = 0;     // bytes of the former
    // The message that is being received. It is taken apart in the ring if it lies there in one
    // piece; else a private copy is collected, in_.
    std::uint32_t bytes_ = 0;
    std::size_t wanted_ = 0; // of the ring; a line, until it is known
    std::size_t collected_ = 0;
    std::byte *in_ = nullptr;
    Door *door_ = nullptr; // NULL: nothing is granted or opened
    DoorName peer_door_ = {};
    std::uint32_t peer_user_ = 0;
};

} // namespace ntb::verbs

#endif
