// SPDX-License-Identifier: BSD-3-Clause
// The kernel's interface: a tap device. net_tap would make one, too, but knows no carrier, no
// offloads and no frames above 1518 bytes.
#ifndef APP_NET_INTERFACE_HPP
#define APP_NET_INTERFACE_HPP

#include <cstdint>
#include <string>
#include <vector>

#include <rte_ether.h>

namespace net
{

class Interface
{
public:
    Interface() = default;
    ~Interface();
    Interface(const Interface &) = delete;
    Interface &operator=(const Interface &) = delete;

    /// Makes the interface, up and without carrier. It ends with this object, or with the process.
    /// @return empty, or one line that says what is wrong
    std::string open(const std::string &name, unsigned queues, uint32_t mtu,
                     const rte_ether_addr &mac);

    /// For read() and write() of a frame behind an OffloadHeader; does not block.
    int queue(unsigned index) const { return queues_[index]; }

    void set_carrier(bool on);
    /// Whether the kernel leaves checksums and the segmentation of TCP to the other end.
    void set_offloads(bool on);
    /// The kernel uses the first @p count queues.
    void set_active(unsigned count);

private:
    void report(const char *what) const;

    std::string name_;
    std::vector<int> queues_;
    unsigned active_ = 0;
};

} // namespace net

#endif
