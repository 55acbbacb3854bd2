// SPDX-License-Identifier: BSD-3-Clause
// What the thread of the bridge is to do with connections that it carries.
#ifndef NTBD_BROKER_RELAY_ORDER_HPP
#define NTBD_BROKER_RELAY_ORDER_HPP

#include "broker/memory.hpp"
#include "wire/message.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unistd.h>
#include <utility>

namespace ntbd
{

using Token = std::array<uint8_t, 16>;

/// Which way the bytes of connections with the peer host take.
enum class Carriage : uint32_t {
    direct = 1, ///< both clients map one memory: the hosts share a machine
    daemon = 2, ///< through the daemons
};

/// Closes a descriptor, which it takes over. Any thread.
using CloseCall = std::function<void(int fd)>;

/// A descriptor that is closed with it.
class Descriptor
{
public:
    /// @param close empty: close(), for what cannot wait
    explicit Descriptor(int fd = -1, CloseCall close = {}) : fd_(fd), close_(std::move(close)) {}
    ~Descriptor() { reset(); }
    Descriptor(Descriptor &&other) noexcept
        : fd_(std::exchange(other.fd_, -1)), close_(std::move(other.close_))
    {
    }
    Descriptor &operator=(Descriptor &&other) noexcept
    {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
            close_ = std::move(other.close_);
        }
        return *this;
    }

    int get() const { return fd_; }

private:
    void reset()
    {
        if (fd_ >= 0 && close_)
            close_(fd_);
        else if (fd_ >= 0)
            close(fd_);
    }

    int fd_;
    CloseCall close_;
};

struct RelayOrder {
    enum class Kind {
        expect,    ///< a connection that the peer's daemon will name
        connect,   ///< one that it expects
        let_go,    ///< id: its client is gone, or it was revoked
        abandon,   ///< id: the peer's daemon will not name it
        fin,       ///< id, generation: the client of a claim has seen a FIN
        rest,      ///< id: it is idle
        send,      ///< message, to the peer's daemon
        drop_peer, ///< the peer's daemon does not keep to the protocol
    } kind = Kind::expect;
    uint64_t id = 0;      ///< of the connection at this daemon
    uint64_t peer_id = 0; ///< at the peer's
    Token token = {};     ///< a secret of the two; send, drop_peer: of this daemon's introduction
    std::shared_ptr<Memory> memory = nullptr;
    bool is_claim = false;        ///< of a TCP connection: the memory has its lines
    unsigned client_end = 0;      ///< which end of the memory the client is
    uint32_t peer_ring_bytes = 0; ///< connect: of the memory at the peer's host
    Descriptor bell{};            ///< the end that is not the client's
    ntbc::Message message = {};
    uint32_t generation = 0;
};

} // namespace ntbd

#endif
