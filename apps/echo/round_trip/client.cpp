// SPDX-License-Identifier: BSD-3-Clause
#include "round_trip/client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <random>

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "cpu_share.hpp"
#include "crc32c.hpp"
#include "peer.hpp"
#include "signals.hpp"
#include "traffic/message.hpp"
#include "traffic/stamp.hpp"
#include "units.hpp"

namespace echo
{

namespace
{

constexpr uint16_t burst = 64;
constexpr unsigned rounds_per_check = 1024;
constexpr double progress_seconds = 1;
// How long echoes may take to come in once a signal has asked for an end.
constexpr double drain_seconds = 0.08;
// A queue that a connected peer does not know stays unconnected; one that is just coming does not.
constexpr double offline_seconds = 0.5;

double seconds_since(uint64_t tsc)
{
    return static_cast<double>(rte_rdtsc() - tsc) / static_cast<double>(rte_get_tsc_hz());
}

uint64_t random_run()
{
    std::random_device device;
    return device() & 0xffffff;
}

} // namespace

Client::Client(ntbmsg_endpoint *endpoint, const Options &options, app::FileSource &source,
               std::FILE *out)
    : endpoint_(endpoint), options_(options), source_(source), out_(out), run_(random_run()),
      queue_count_(static_cast<uint16_t>(options.queues)),
      slots_(options.in_flight * options.queues, Slot{}),
      data_(new std::byte[options.in_flight * options.queues * options.size]()),
      queues_(options.queues)
{
}

Client::~Client()
{
    for (const Slot &slot : slots_) {
        rte_pktmbuf_free(slot.going);
        rte_pktmbuf_free(slot.back);
    }
}

void Client::fail(std::string error)
{
    if (report_->error.empty())
        report_->error = std::move(error);
}

void Client::run(Report &report)
{
    report_ = &report;
    const app::CpuShare share;
    start_tsc_ = last_echo_tsc_ = alive_tsc_ = rte_rdtsc();
    for (unsigned rounds = 0; report.error.empty(); ++rounds) {
        read_ahead();
        for (uint16_t q = 0; q < queue_count_; ++q)
            send(q);
        for (uint16_t q = 0; q < queue_count_; ++q)
            receive(q);
        deliver();
        if (rounds % rounds_per_check == 0)
            look_around();
        if (delivered_ == staged_ && !wants_more())
            break;
    }
    report.seconds =
        static_cast<double>(last_echo_tsc_ - start_tsc_) / static_cast<double>(rte_get_tsc_hz());
    report.cpu_share = share.taken();
    report.interrupted = interrupted_;
    for (const Queue &queue : queues_)
        report.missing += queue.sent;
    report.missing -= delivered_;
    report.stats.size = sizeof(report.stats);
    ntbmsg_endpoint_stats_get(endpoint_, &report.stats);
}

bool Client::wants_more() const
{
    return !stopping_ && !source_ended_ && (options_.count == 0 || staged_ < options_.count);
}

/// Fills free slots, at most a burst a round so that echoes are not kept waiting.
void Client::read_ahead()
{
    const uint64_t free = slots_.size() - (staged_ - delivered_);
    const uint64_t most = std::min<uint64_t>(free, burst);
    for (uint64_t i = 0; i < most && wants_more(); ++i) {
        if (!stage())
            return;
    }
}

/// Reads one message. @return false: not now, or no more
bool Client::read_piece(std::byte *into)
{
    using Got = app::FileSource::Got;
    const std::span<std::byte> room(into, options_.size);
    // Only a count or a time asks for more than the file has.
    const bool repeats = options_.count != 0 || options_.seconds != 0;
    Got got = source_.next(room, read_bytes_);
    if (got == Got::end && repeats && source_.rewind())
        got = source_.next(room, read_bytes_);
    if (got == Got::failed)
        fail(source_.error());
    source_ended_ = got == Got::end;
    return got == Got::piece;
}

/// Reads one message and puts it into mbufs. @return false: not now, or no more
bool Client::stage()
{
    std::byte *data = data_of(staged_);
    if (read_bytes_ == 0 && !read_piece(data))
        return false;
    rte_mbuf *message = make_message(ntbmsg_endpoint_pool(endpoint_), data, read_bytes_);
    if (message == nullptr)
        return false; // the pool is empty until something has been sent: what was read stays
    slot_of(staged_) = {message, nullptr, 0, read_bytes_};
    report_->crc_sent = app::crc32c(data, read_bytes_, report_->crc_sent);
    read_bytes_ = 0;
    ++staged_;
    return true;
}

void Client::send(uint16_t q)
{
    Queue &queue = queues_[q];
    std::array<rte_mbuf *, burst> mbufs;
    std::array<ntbmsg_meta, burst> meta;
    const uint64_t now = rte_rdtsc();
    uint16_t n = 0;
    for (; n < burst; ++n) {
        const uint64_t message = global(q, queue.sent + n);
        if (message >= staged_)
            break;
        Slot &slot = slot_of(message);
        slot.sent_tsc = now;
        mbufs[n] = slot.going;
        meta[n] = {stamp(run_, message), 0, 0};
    }
    if (n == 0)
        return;
    const int sent = ntbmsg_queue_send_burst(endpoint_, q, mbufs.data(), meta.data(), n);
    if (sent < 0)
        return note_send_error(q, sent);
    offline_tsc_ = 0;
    for (int i = 0; i < sent; ++i, ++queue.sent)
        slot_of(global(q, queue.sent)).going = nullptr;
}

void Client::note_send_error(uint16_t q, int error)
{
    if (error != -ENOTCONN)
        return fail("queue " + std::to_string(q) + " cannot send: " + std::strerror(-error));
    look_at_events(); // a lost peer is reported there
    if (offline_tsc_ == 0)
        offline_tsc_ = rte_rdtsc();
    if (q != 0 && seconds_since(offline_tsc_) > offline_seconds &&
        ntbmsg_endpoint_link_state_get(endpoint_) == NTBMSG_LINK_CONNECTED)
        fail("the peer has no queue " + std::to_string(q) + ": serve with --queues " +
             std::to_string(queue_count_));
}

void Client::receive(uint16_t q)
{
    std::array<rte_mbuf *, burst> mbufs;
    std::array<ntbmsg_meta, burst> meta;
    const int got = ntbmsg_queue_recv_burst(endpoint_, q, mbufs.data(), meta.data(), burst);
    if (got <= 0)
        return;
    const uint64_t now = rte_rdtsc();
    for (size_t i = 0; i < static_cast<size_t>(got); ++i)
        accept(q, mbufs[i], meta[i], now);
}

/// Puts an echo into its slot. What the peer says about it is checked before it is used.
void Client::accept(uint16_t q, rte_mbuf *mbuf, const ntbmsg_meta &meta, uint64_t now)
{
    Queue &queue = queues_[q];
    const uint64_t expected = global(q, queue.received);
    const bool echo = (meta.flags & echoed_flag) != 0;
    if (!echo)
        fail("the peer sends as well: one side has to --serve");
    else if (run_of(meta.data) == run_ &&
             (queue.received == queue.sent || number_of(meta.data) != (expected & number_mask)))
        fail("queue " + std::to_string(q) + ": message " + std::to_string(number_of(meta.data)) +
             " came back where " + std::to_string(expected) + " was due");
    if (!echo || run_of(meta.data) != run_ || !report_->error.empty()) {
        rte_pktmbuf_free(mbuf);
        return;
    }
    Slot &slot = slot_of(expected);
    slot.back = mbuf;
    report_->built += (meta.flags & built_flag) != 0;
    report_->round_trips.record(now - slot.sent_tsc);
    ++queue.received;
    last_echo_tsc_ = alive_tsc_ = now;
}

/// Takes echoes in the order of the file.
void Client::deliver()
{
    while (delivered_ != staged_ && report_->error.empty()) {
        Slot &slot = slot_of(delivered_);
        if (slot.back == nullptr)
            return;
        if (std::string error = compare(slot, data_of(delivered_)); !error.empty())
            return fail(std::move(error));
        rte_pktmbuf_free(slot.back);
        slot.back = nullptr;
        ++report_->messages;
        report_->bytes += slot.bytes;
        ++delivered_;
    }
}

std::string Client::compare(const Slot &slot, const std::byte *sent)
{
    const auto where = [this] { return "message " + std::to_string(delivered_); };
    if (slot.back->pkt_len != slot.bytes)
        return where() + " came back with " + std::to_string(slot.back->pkt_len) + " bytes, " +
               std::to_string(slot.bytes) + " were sent";
    size_t offset = 0;
    for (const rte_mbuf *piece = slot.back; piece != nullptr; piece = piece->next) {
        const std::byte *back = rte_pktmbuf_mtod(piece, const std::byte *);
        const size_t n = piece->data_len;
        report_->crc_back = app::crc32c(back, n, report_->crc_back);
        if (std::memcmp(back, sent + offset, n) != 0) {
            const auto differs = std::mismatch(back, back + n, sent + offset).first - back;
            return where() + " came back with other bytes, the first at offset " +
                   std::to_string(offset + static_cast<size_t>(differs));
        }
        if (out_ != nullptr && std::fwrite(back, 1, n, out_) != n)
            return options_.out + ": " + std::strerror(errno);
        offset += n;
    }
    return {};
}

/// What need not be looked at in each round: signals, time limits, events, progress.
void Client::look_around()
{
    look_at_events();
    const double elapsed = seconds_since(start_tsc_);
    if (app::stop_signal() != 0 && !interrupted_) {
        interrupted_ = stopping_ = true;
        alive_tsc_ = rte_rdtsc();
    }
    if (options_.seconds != 0 && elapsed >= options_.seconds)
        stopping_ = true;
    const bool waiting = delivered_ != staged_;
    const double patience = interrupted_ ? drain_seconds : options_.timeout;
    if (waiting && seconds_since(alive_tsc_) > patience)
        fail(interrupted_ ? "ended by a signal while the peer did not answer"
                          : "nothing came back for " + app::with_unit(options_.timeout, "s"));
    if (!waiting)
        alive_tsc_ = rte_rdtsc(); // a source that is slow to say more is no silence of the peer
    if (!options_.quiet && elapsed >= next_progress_)
        show_progress(elapsed);
}

void Client::look_at_events()
{
    ntbmsg_event event;
    while (ntbmsg_endpoint_event_poll(endpoint_, &event) == 1) {
        if (event == NTBMSG_EVENT_LOST || event == NTBMSG_EVENT_REFUSED)
            fail(app::event_text(endpoint_, event));
        else if (event != NTBMSG_EVENT_CONNECTED)
            std::fprintf(stderr, "%s\n", app::event_text(endpoint_, event).c_str());
    }
}

void Client::show_progress(double seconds)
{
    next_progress_ += progress_seconds;
    const auto bytes = static_cast<double>(report_->bytes);
    std::fprintf(stderr, "%5.0f s  %" PRIu64 " messages  %s  %s", seconds, delivered_,
                 app::with_unit(bytes, "B").c_str(),
                 app::with_unit(
                     static_cast<double>(delivered_ - last_delivered_) / progress_seconds, "msg/s")
                     .c_str());
    const bool once = options_.count == 0 && options_.seconds == 0 && source_.size() != 0;
    if (once)
        std::fprintf(stderr, "  %.0f %%", 100 * bytes / static_cast<double>(source_.size()));
    std::fprintf(stderr, "\n");
    last_delivered_ = delivered_;
}

} // namespace echo
