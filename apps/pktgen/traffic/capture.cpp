// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/capture.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <pcap/pcap.h>

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "point/point.hpp"

namespace pktgen
{

namespace
{

constexpr uint64_t ns_per_second = 1000000000u;
constexpr size_t mean_packet = 64; ///< so many entries are kept for so many bytes
// What is read may be anything; most tools can show it as Ethernet.
constexpr int link_type = DLT_EN10MB;

uint64_t wall_ns()
{
    timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return static_cast<uint64_t>(ts.tv_sec) * ns_per_second + static_cast<uint64_t>(ts.tv_nsec);
}

} // namespace

struct Capture::File {
    pcap_t *format;
    pcap_dumper_t *dumper = nullptr;

    File()
        : format(pcap_open_dead_with_tstamp_precision(link_type, static_cast<int>(largest_size) + 1,
                                                      PCAP_TSTAMP_PRECISION_NANO))
    {
    }
    ~File()
    {
        if (dumper != nullptr)
            pcap_dump_close(dumper);
        pcap_close(format);
    }
    File(const File &) = delete;
    File &operator=(const File &) = delete;
};

Capture::Capture(std::string path, size_t bytes)
    : path_(std::move(path)), whole_(std::make_unique<std::byte[]>(largest_size)),
      begin_ns_(wall_ns()), begin_tsc_(rte_rdtsc())
{
    packets_.reserve(bytes / mean_packet, bytes);
}

Capture::~Capture() = default;

std::string Capture::open()
{
    auto file = std::make_unique<File>();
    file->dumper = pcap_dump_open(file->format, path_.c_str());
    if (file->dumper == nullptr)
        return pcap_geterr(file->format);
    file_ = std::move(file);
    return {};
}

bool Capture::take(const rte_mbuf *message)
{
    const double ns_per_tick = 1e9 / static_cast<double>(rte_get_tsc_hz());
    const double passed = static_cast<double>(rte_rdtsc() - begin_tsc_) * ns_per_tick;
    const void *data = rte_pktmbuf_read(message, 0, message->pkt_len, whole_.get());
    return packets_.add(begin_ns_ + static_cast<uint64_t>(passed),
                        {static_cast<const std::byte *>(data), message->pkt_len});
}

std::string Capture::flush()
{
    if (file_ == nullptr)
        return {};
    for (size_t i = 0; i < packets_.count(); ++i) {
        pcap_pkthdr header = {};
        header.ts.tv_sec = static_cast<time_t>(packets_.ns(i) / ns_per_second);
        header.ts.tv_usec = static_cast<suseconds_t>(packets_.ns(i) % ns_per_second);
        header.caplen = header.len = packets_.size(i);
        pcap_dump(reinterpret_cast<u_char *>(file_->dumper), &header,
                  reinterpret_cast<const u_char *>(packets_.data(i).data()));
    }
    packets_.clear();
    errno = 0;
    const bool written =
        pcap_dump_flush(file_->dumper) == 0 && ferror(pcap_dump_file(file_->dumper)) == 0;
    if (written)
        return {};
    const std::string why = errno != 0 ? std::strerror(errno) : "could not be written";
    file_.reset();
    return path_ + ": " + why;
}

} // namespace pktgen
