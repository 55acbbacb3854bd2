// SPDX-License-Identifier: BSD-3-Clause
// What a connection manager needs of the world: ways to other managers, and the machine's
// addresses.
#ifndef NTB_VERBS_CM_SURROUNDINGS_HPP
#define NTB_VERBS_CM_SURROUNDINGS_HPP

#include <cstdint>

#include "cm/address.hpp"
#include "cm/message.hpp"

namespace ntb::verbs::cm
{

struct Port {
    std::uint16_t space; ///< RDMA_PS_*
    std::uint16_t number;

    friend bool operator==(const Port &, const Port &) = default;
};

/// A way to another manager, as its carrier counts it; 0: none.
using Link = std::uint32_t;

/// Ways to other managers. What they say arrives by the calls of Manager. Calls do not call back.
class Carrier
{
public:
    virtual ~Carrier() = default;

    /// Claims a port of this host, and takes requests for it from both hosts.
    /// @return 0; -EADDRINUSE; other negative errno values: the daemon
    virtual int claim(Port port) = 0;
    virtual void release(Port port) = 0;
    /// Begins to ask who has claimed a port.
    /// @param here_first  the address is one of this machine's
    /// @return the way to it; Manager::lost() says what became of it if no answer does
    virtual Link connect(Port port, bool here_first, const Message &request) = 0;
    /// Begins to ask at which host a port is, this one or else the peer. Manager::located() says
    /// so, or after a while lost(); then the way is no more.
    /// @param here_first  as of connect()
    virtual Link locate(Port port, bool here_first, std::uint32_t timeout_ms) = 0;
    /// @retval false the way is lost; Manager::lost() does not say so any more
    virtual bool send(Link link, const Message &message) = 0;
    /// What was sent still arrives. Nothing is said of this way any more.
    virtual void close(Link link) = 0;
};

/// The device's port, once it is open.
struct DevicePort {
    std::uint16_t lid = 0; ///< 0: it is not
    std::uint8_t gid[16] = {};
};

/// The machine, its addresses and its device.
class Host
{
public:
    virtual ~Host() = default;

    /// @return 0: it is reached by the device; -EHOSTUNREACH: it is not, and it was logged why
    virtual int check_peer(const Address &peer) = 0;
    /// Whether it is an address of this machine. The port does not matter.
    virtual bool is_own(const Address &address) = 0;
    /// From which address the machine would speak to that one; any address if it would not.
    virtual Address source_for(const Address &peer) = 0;
    virtual DevicePort device_port() = 0;
    /// In network byte order.
    virtual std::uint64_t node_guid() = 0;
    virtual std::uint32_t device_index() = 0;
    virtual std::uint32_t random() = 0;
};

} // namespace ntb::verbs::cm

#endif
