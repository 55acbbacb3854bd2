// SPDX-License-Identifier: BSD-3-Clause
// The map of addresses, and the machine's own.
#ifndef NTB_VERBS_CM_HOSTS_HPP
#define NTB_VERBS_CM_HOSTS_HPP

#include <memory>
#include <string>

#include "cm/surroundings.hpp"

namespace ntb::socket
{
class Config;
}

namespace ntb::verbs::cm
{

/// Of a process with one device.
class Hosts final : public Host
{
public:
    /// @param socket  of the device's daemon
    Hosts(std::string socket, std::uint64_t guid, std::uint32_t index);
    ~Hosts() override;

    /// @param path  of a configuration of sockets, whose `host` lines are the map
    /// @return what is wrong with it; empty: nothing
    std::string load(const char *path);
    void set_device_port(const DevicePort &port) { port_ = port; }

    int check_peer(const Address &peer) override;
    bool is_own(const Address &address) override;
    Address source_for(const Address &peer) override;
    DevicePort device_port() override { return port_; }
    std::uint64_t node_guid() override { return guid_; }
    std::uint32_t device_index() override { return index_; }
    std::uint32_t random() override;

private:
    std::string map_ = "none";
    std::unique_ptr<socket::Config> config_;
    std::string socket_;
    std::uint64_t guid_;
    std::uint32_t index_;
    DevicePort port_;
};

} // namespace ntb::verbs::cm

#endif
