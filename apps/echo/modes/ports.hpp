// SPDX-License-Identifier: BSD-3-Clause
// The ethdev ports that mode io bridges to.
#ifndef ECHO_MODES_PORTS_HPP
#define ECHO_MODES_PORTS_HPP

#include <cstdint>
#include <string>
#include <vector>

struct rte_mempool;

namespace echo
{

/// A queue of a port, and what may be sent there.
struct PortQueue {
    uint16_t port, queue;
    uint32_t longest_frame; ///< bytes
    uint16_t most_segments;
};

/// All ports that EAL knows. Queue q of the endpoint goes with port q mod ports, and there with
/// queue q div ports. Used by the main lcore; each queue by the lcore that drives it.
class Ports
{
public:
    Ports() = default;
    /// Closes them. The mbufs that they delivered have been freed by then.
    ~Ports();
    Ports(const Ports &) = delete;
    Ports &operator=(const Ports &) = delete;

    /// Configures them for @p queues queues of the endpoint, the first time, and starts them.
    /// @return empty, or one line that says what is wrong: none is started then
    std::string start(uint16_t queues);
    void stop();

    /// The one of an endpoint's queue. After start().
    const PortQueue &of(uint16_t queue) const { return queues_[queue]; }

private:
    struct Port {
        uint16_t id;
        uint16_t queues;
        uint16_t rx_lines, tx_lines; ///< descriptors of a queue
        PortQueue limits;
        bool started;
    };

    std::string configure(uint16_t queues);
    std::string configure_port(Port &port);
    std::string set_up_queues(const Port &port);

    std::vector<Port> ports_;
    std::vector<PortQueue> queues_;
    rte_mempool *pool_ = nullptr;
};

} // namespace echo

#endif
