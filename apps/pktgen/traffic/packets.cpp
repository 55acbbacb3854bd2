// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/packets.hpp"

#include <algorithm>
#include <memory>
#include <pcap/pcap.h>

#include "point/point.hpp"

namespace pktgen
{

namespace
{

constexpr size_t most_bytes = size_t{1} << 30;

struct Close {
    void operator()(pcap_t *file) const { pcap_close(file); }
};
using File = std::unique_ptr<pcap_t, Close>;

uint64_t ns_of(const pcap_pkthdr &header)
{
    // Opened for nanoseconds: the microseconds are none.
    return static_cast<uint64_t>(header.ts.tv_sec) * 1000000000u +
           static_cast<uint64_t>(header.ts.tv_usec);
}

} // namespace

std::string Packets::read(const std::string &path)
{
    char why[PCAP_ERRBUF_SIZE] = "";
    const File file(
        pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, why));
    if (file == nullptr)
        return std::string(why).find(path) == 0 ? why : path + ": " + why;
    pcap_pkthdr *header = nullptr;
    const u_char *data = nullptr;
    int rc = 0;
    uint64_t first = 0;
    while ((rc = pcap_next_ex(file.get(), &header, &data)) == 1) {
        if (header->caplen == 0 || header->caplen > largest_size)
            continue;
        if (bytes_.size() + header->caplen > most_bytes)
            return path + ": more than 1 GiB of packets";
        first = entries_.empty() ? ns_of(*header) : first;
        // Clocks that were set back while it was recorded do not set ours back.
        const uint64_t last = entries_.empty() ? 0 : entries_.back().ns;
        const uint64_t now = ns_of(*header);
        const uint64_t since = now > first ? now - first : 0;
        entries_.push_back({std::max(last, since), bytes_.size(), header->caplen});
        const auto *from = reinterpret_cast<const std::byte *>(data);
        bytes_.insert(bytes_.end(), from, from + header->caplen);
    }
    if (rc == PCAP_ERROR)
        return path + ": " + pcap_geterr(file.get());
    return entries_.empty() ? path + " holds no packets" : std::string();
}

bool Packets::add(uint64_t ns, std::span<const std::byte> data)
{
    if (entries_.size() == entries_.capacity() || bytes_.capacity() - bytes_.size() < data.size())
        return false;
    entries_.push_back({ns, bytes_.size(), static_cast<uint32_t>(data.size())});
    bytes_.insert(bytes_.end(), data.begin(), data.end());
    return true;
}

void Packets::reserve(size_t packets, size_t bytes)
{
    entries_.reserve(packets);
    bytes_.reserve(bytes);
}

void Packets::clear()
{
    entries_.clear();
    bytes_.clear();
}

std::vector<uint32_t> Packets::sizes() const
{
    std::vector<uint32_t> sizes;
    for (const Entry &entry : entries_)
        sizes.push_back(entry.size);
    return sizes;
}

} // namespace pktgen
