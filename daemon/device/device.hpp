// SPDX-License-Identifier: BSD-3-Clause
// The bridge, as far as daemons use it: one channel each way, over which each introduces itself and
// sends messages, and one for each connection that they carry. A thread of its own.
#ifndef NTBD_DEVICE_DEVICE_HPP
#define NTBD_DEVICE_DEVICE_HPP

#include "carrier/carrier.hpp"

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace ntbd
{

/// EAL from construction to the end of the scope.
class Eal
{
public:
    /// @param arguments of EAL, without the program's name
    explicit Eal(const std::vector<std::string> &arguments);
    ~Eal();
    Eal(const Eal &) = delete;
    Eal &operator=(const Eal &) = delete;

    bool running() const { return running_; } ///< false: EAL has said why

private:
    bool running_;
};

class Device
{
public:
    /// @param socket the path of this daemon's socket, for a peer on this machine
    Device(std::string name, std::string socket, CarrierChoice carrier, Mailbox &mailbox);
    ~Device();
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    /// @return 0 or a negative errno: ntbmsg has said why
    int start();
    void stop();
    /// Any thread, while it is started.
    Carrier::Figures figures() const;

private:
    struct Link;

    std::string name_;
    std::string socket_;
    CarrierChoice carrier_choice_;
    Mailbox &mailbox_;
    std::unique_ptr<Link> link_;
    std::unique_ptr<Carrier> carrier_;
    std::thread thread_;
};

} // namespace ntbd

#endif
