// SPDX-License-Identifier: BSD-3-Clause
// Packets of a pcap file, in memory: what a replay sends and a capture has taken.
#ifndef PKTGEN_TRAFFIC_PACKETS_HPP
#define PKTGEN_TRAFFIC_PACKETS_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pktgen
{

class Packets
{
public:
    /// Reads a file of pcap or pcapng format, at most 1 GiB of packets. Empty packets are left out.
    /// @return empty, or one line that says what is wrong; a truncated file is wrong
    std::string read(const std::string &path);

    /// Takes a packet while there is room. @return false: there is none
    bool add(uint64_t ns, std::span<const std::byte> data);
    /// Makes room, once, so that add() needs to allocate nothing.
    void reserve(size_t packets, size_t bytes);
    /// Forgets all packets, keeps the room.
    void clear();

    size_t count() const { return entries_.size(); }
    std::span<const std::byte> data(size_t i) const
    {
        return {&bytes_[entries_[i].at], entries_[i].size};
    }
    uint32_t size(size_t i) const { return entries_[i].size; }
    /// Since the first packet; never falls.
    uint64_t ns(size_t i) const { return entries_[i].ns; }
    std::vector<uint32_t> sizes() const;

private:
    struct Entry {
        uint64_t ns;
        size_t at;
        uint32_t size;
    };
    std::vector<Entry> entries_;
    std::vector<std::byte> bytes_;
};

} // namespace pktgen

#endif
