// SPDX-License-Identifier: BSD-3-Clause
#include "interface.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace net
{

namespace
{

ifreq request(const std::string &name)
{
    ifreq r{};
    std::strncpy(r.ifr_name, name.c_str(), IFNAMSIZ - 1);
    return r;
}

/// One queue of the tap device. @return a descriptor, or -1 with errno
int open_queue(const std::string &name, bool one_of_many)
{
    const int fd = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ifreq r = request(name);
    r.ifr_flags = static_cast<short>(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR |
                                     (one_of_many ? IFF_MULTI_QUEUE : 0));
    const int little = 1; // what crosses the bridge has one byte order
    if (ioctl(fd, TUNSETIFF, &r) == 0 && ioctl(fd, TUNSETVNETLE, &little) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/// Address, MTU and state. @return 0, or -1 with errno
int set_up(const std::string &name, uint32_t mtu, const rte_ether_addr &mac)
{
    const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0)
        return -1;
    ifreq r = request(name);
    r.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    std::memcpy(r.ifr_hwaddr.sa_data, &mac, sizeof(mac));
    int rc = ioctl(s, SIOCSIFHWADDR, &r);
    r = request(name);
    r.ifr_mtu = static_cast<int>(mtu);
    rc = rc == 0 ? ioctl(s, SIOCSIFMTU, &r) : rc;
    r = request(name);
    rc = rc == 0 ? ioctl(s, SIOCGIFFLAGS, &r) : rc;
    r.ifr_flags = static_cast<short>(r.ifr_flags | IFF_UP);
    rc = rc == 0 ? ioctl(s, SIOCSIFFLAGS, &r) : rc;
    const int error = errno;
    close(s);
    errno = error;
    return rc;
}

} // namespace

Interface::~Interface()
{
    for (const int fd : queues_)
        close(fd);
}

void Interface::report(const char *what) const
{
    std::fprintf(stderr, "ntbmsg-net: %s: %s: %s\n", name_.c_str(), what, std::strerror(errno));
}

std::string Interface::open(const std::string &name, unsigned queues, uint32_t mtu,
                            const rte_ether_addr &mac)
{
    if (name.empty() || name.size() >= IFNAMSIZ)
        return "\"" + name + "\" is no name of an interface: expected 1 to 15 characters";
    // The kernel would attach to a tap device that exists, and what it is set to would be unknown.
    if (if_nametoindex(name.c_str()) != 0)
        return name + ": there is an interface of this name";
    name_ = name;
    for (unsigned q = 0; q < queues; ++q) {
        const int fd = open_queue(name, queues > 1);
        if (fd < 0)
            return name + ": no tap device: " + std::strerror(errno) +
                   (errno == EPERM ? " (it takes CAP_NET_ADMIN)" : "");
        queues_.push_back(fd);
    }
    active_ = queues;
    set_carrier(false);
    set_offloads(false);
    set_active(1);
    if (set_up(name, mtu, mac) != 0)
        return name + ": an MTU of " + std::to_string(mtu) +
               " and its address cannot be set: " + std::strerror(errno);
    return {};
}

void Interface::set_carrier(bool on)
{
    int value = on ? 1 : 0;
    if (ioctl(queues_[0], TUNSETCARRIER, &value) != 0)
        report("the carrier cannot be set");
}

void Interface::set_offloads(bool on)
{
    const unsigned value = on ? TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN : 0;
    if (ioctl(queues_[0], TUNSETOFFLOAD, value) != 0)
        report("offloads cannot be set");
}

void Interface::set_active(unsigned count)
{
    for (; active_ != count; active_ += active_ < count ? 1 : -1u) {
        const bool more = active_ < count;
        ifreq r = request(name_);
        r.ifr_flags = static_cast<short>(more ? IFF_ATTACH_QUEUE : IFF_DETACH_QUEUE);
        if (ioctl(queues_[more ? active_ : active_ - 1], TUNSETQUEUE, &r) != 0) {
            report("the number of queues cannot be set");
            return;
        }
    }
}

} // namespace net
