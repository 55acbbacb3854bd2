// SPDX-License-Identifier: BSD-3-Clause
// The port of net_plx_ntb.
#ifndef APP_NET_PORT_HPP
#define APP_NET_PORT_HPP

#include <cstdint>
#include <string>

#include <rte_ether.h>
#include <rte_mempool.h>

#include "state.hpp"

namespace net
{

class Port
{
public:
    Port() = default;
    ~Port(); ///< stops and closes it
    Port(const Port &) = delete;
    Port &operator=(const Port &) = delete;

    /// Sets up as many queues each way, with interrupts, for the longest frames that go.
    /// @param name  of the port; empty: the one that there is
    /// @return empty, or one line that says what is wrong
    std::string open(const std::string &name, uint16_t queues, State *state);
    /// From now on the link is reported in the state.
    std::string start();
    void stop();

    uint16_t id() const { return id_; }
    const std::string &name() const { return name_; }
    const rte_ether_addr &mac() const { return mac_; }
    bool takes_longest() const { return mtu_ == UINT16_MAX; }
    uint16_t mtu() const { return mtu_; }
    rte_mempool *pool() const { return pool_; } ///< for frames to the peer

private:
    uint16_t id_ = UINT16_MAX;
    std::string name_;
    rte_ether_addr mac_{};
    uint16_t mtu_ = 0;
    State *state_ = nullptr;
    rte_mempool *pool_ = nullptr, *rx_pool_ = nullptr;
    bool started_ = false;
};

} // namespace net

#endif
