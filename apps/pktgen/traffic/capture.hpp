// SPDX-License-Identifier: BSD-3-Clause
// What arrives, kept in memory while it is measured and written as a pcap file afterwards.
#ifndef PKTGEN_TRAFFIC_CAPTURE_HPP
#define PKTGEN_TRAFFIC_CAPTURE_HPP

#include <cstdint>
#include <memory>
#include <string>

#include "traffic/packets.hpp"

struct rte_mbuf;

namespace pktgen
{

class Capture
{
public:
    Capture(std::string path, size_t bytes);
    ~Capture();
    Capture(const Capture &) = delete;
    Capture &operator=(const Capture &) = delete;

    /// Creates the file. @return empty, or one line that says what is wrong
    std::string open();

    /// HOT. @return false: there is no room for it
    bool take(const rte_mbuf *message);

    /// Appends what was taken since the last time, outside any measurement.
    /// @return empty, or one line that says what is wrong; nothing is written any more then
    std::string flush();

private:
    struct File;

    const std::string path_;
    Packets packets_;
    std::unique_ptr<File> file_;
    std::unique_ptr<std::byte[]> whole_; ///< a message of several segments, in one piece
    uint64_t begin_ns_ = 0;              ///< wall clock
    uint64_t begin_tsc_ = 0;
};

} // namespace pktgen

#endif
