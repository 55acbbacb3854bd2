// SPDX-License-Identifier: BSD-3-Clause
// Mode file: sends and receives files and folders, both ways at once.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "files/in.hpp"
#include "files/out.hpp"
#include "modes/modes.hpp"
#include "traffic/message.hpp"
#include "traffic/outbox.hpp"

namespace echo
{

namespace
{

using file::Kind;
using file::Message;
using State = file::Out::State;

// Data leave room in the outbox for answers.
constexpr uint16_t most_data = longest_burst / 2;
// An offer without an answer was received by a peer in another mode; a file whose end is not
// confirmed, by one that had no mbuf to say so. Both are offered again.
constexpr double patience_seconds = 2;
// What a peer that gives up each time is granted.
constexpr unsigned most_offers = 64;

/// Copies bytes that the message has.
void copy_out(const rte_mbuf *mbuf, size_t at, std::span<std::byte> to)
{
    const void *from = rte_pktmbuf_read(mbuf, static_cast<uint32_t>(at),
                                        static_cast<uint32_t>(to.size()), to.data());
    if (from != nullptr && from != to.data())
        std::memcpy(to.data(), from, to.size());
}

struct FileCounts {
    uint64_t sent = 0, sent_bytes = 0, received = 0, received_bytes = 0, failed = 0, refused = 0;
};

class FileMode final : public Forwarder
{
public:
    FileMode(const Way &way, const Settings &settings)
        : Forwarder(way), work_(*settings.files), size_(settings.size),
          burst_(static_cast<uint16_t>(std::min<uint64_t>(settings.burst, most_data)))
    {
    }
    ~FileMode() override
    {
        if (out_.state() != State::none)
            work_.put_back(out_.job());
    }

    void poll() override
    {
        receive();
        read_incoming();
        push_outgoing();
        if (!box_.empty())
            flush();
    }
    void link_lost() override
    {
        counters_.dropped += box_.drop_all();
        in_.close();
        out_.offer_again();
        peer_takes_ = 0;
    }
    bool ends() const override { return true; }
    bool done() const override { return box_.empty() && work_.idle(); }
    std::string report() const override;
    void clear() override
    {
        Forwarder::clear();
        files_ = {};
    }

private:
    void receive();
    void take(const rte_mbuf *mbuf);
    void take_offer(const Message &offer);
    void begin(const Message &offer);
    void take_data(const Message &data, const rte_mbuf *mbuf);
    void take_end(const Message &end);
    void take_done(const Message &done);
    void take_abort(const Message &abort);

    void read_incoming();
    void not_mine(uint64_t transfer);
    void give_up_incoming(const Message &offer, int error);

    void push_outgoing();
    void look_for_job();
    void offer();
    void push_data();
    void wait_for_peer();
    void end_job(const std::string &error);
    void fail_outgoing(int error);
    void flush();

    void say(const Message &message);
    void note(const char *what, const std::string &name, uint64_t bytes, uint32_t crc);

    FileWork &work_;
    const uint64_t size_; ///< bytes of a message of data
    const uint16_t burst_;
    uint64_t peer_takes_ = 0; ///< longest message in bytes; 0: to be asked
    unsigned offers_ = 0;     ///< of the file that is under way
    uint64_t asked_tsc_ = 0;  ///< when the peer was last asked for something
    uint64_t given_up_ = 0;   ///< the transfer that was aborted last
    FileCounts files_;
    file::In in_;
    file::Out out_;
    Outbox box_;
    std::array<rte_mbuf *, longest_burst> mbufs_;
};

// What comes.

void FileMode::receive()
{
    const int got = way_.receive(mbufs_.data(), nullptr, burst_);
    if (got <= 0)
        return;
    const auto n = static_cast<uint16_t>(got);
    count_received(mbufs_.data(), n);
    for (uint16_t i = 0; i < n; ++i)
        take(mbufs_[i]);
    rte_pktmbuf_free_bulk(mbufs_.data(), n);
}

void FileMode::take(const rte_mbuf *mbuf)
{
    // Copied once: the peer may still write to where the message lies.
    std::array<std::byte, file::header_bytes + file::most_name_bytes> copy;
    const size_t bytes = mbuf->pkt_len;
    size_t have = std::min(bytes, file::header_bytes);
    copy_out(mbuf, 0, std::span(copy).first(have));
    if (bytes > have && copy[0] == static_cast<std::byte>(Kind::offer)) {
        const size_t name = std::min(bytes, copy.size()) - have;
        copy_out(mbuf, have, std::span(copy).subspan(have, name));
        have += name;
    }
    const auto message = file::decode({copy.data(), have}, bytes);
    if (!message) {
        ++counters_.unexpected;
        return;
    }
    switch (message->kind) {
    case Kind::offer:
        return take_offer(*message);
    case Kind::accept:
        if (out_.state() != State::none && out_.is_mine(*message))
            out_.accepted(*message);
        return;
    case Kind::data:
        return take_data(*message, mbuf);
    case Kind::end:
        return take_end(*message);
    case Kind::done:
        return take_done(*message);
    case Kind::abort:
        return take_abort(*message);
    }
}

void FileMode::take_offer(const Message &offer)
{
    int error = 0;
    if (work_.folder_fd() < 0)
        error = EACCES;
    else if (!file::name_is_safe(offer.name))
        error = EINVAL;
    if (error != 0) {
        ++files_.refused;
        work_.note("refused " + file::printable(offer.name) + ": " +
                   (error == EACCES ? "no folder is chosen (set dir)" : "a name that leads away"));
        return say({Kind::abort, static_cast<uint32_t>(error), offer.transfer});
    }
    if (!in_.is_same(offer) || in_.written())
        return begin(offer);
    in_.rename(offer.transfer); // asked again, because we were slow to read
    if (!in_.reading())
        say({Kind::accept, in_.crc(), offer.transfer, in_.have()});
}

void FileMode::begin(const Message &offer)
{
    in_.close();
    if (S_ISDIR(offer.value)) {
        const int error = file::make_folder(work_.folder_fd(), offer.name);
        if (error != 0)
            return give_up_incoming(offer, error);
        return say({Kind::done, 0, offer.transfer, 0});
    }
    if (const int error = in_.open(work_.folder_fd(), offer); error != 0)
        return give_up_incoming(offer, error);
    if (!in_.reading())
        say({Kind::accept, in_.crc(), offer.transfer, in_.have()});
}

/// A piece a round, so that other queues do not wait for a large file.
void FileMode::read_incoming()
{
    if (!in_.reading())
        return;
    int error = 0;
    if (in_.read_some(error))
        return;
    if (error != 0)
        give_up_incoming(in_.offer(), error);
    else
        say({Kind::accept, in_.crc(), in_.offer().transfer, in_.have()});
}

void FileMode::take_data(const Message &data, const rte_mbuf *mbuf)
{
    if (!in_.is_open() || data.transfer != in_.offer().transfer || in_.reading())
        return not_mine(data.transfer);
    if (const int error = in_.write(data, mbuf); error != 0)
        give_up_incoming(in_.offer(), error);
}

void FileMode::take_end(const Message &end)
{
    if (!in_.is_open() || end.transfer != in_.offer().transfer || in_.reading())
        return not_mine(end.transfer);
    if (const int error = in_.finish(end); error != 0)
        return give_up_incoming(in_.offer(), error);
    ++files_.received;
    files_.received_bytes += end.number;
    note("received", in_.offer().name, end.number, end.value);
    say({Kind::done, end.value, end.transfer, end.number});
}

/// From before a loss of the link, or a breach. Reported once: much of it may be on its way.
void FileMode::not_mine(uint64_t transfer)
{
    if (transfer == given_up_)
        return;
    given_up_ = transfer;
    say({Kind::abort, ESTALE, transfer});
}

void FileMode::give_up_incoming(const Message &offer, int error)
{
    given_up_ = offer.transfer;
    ++files_.refused;
    work_.note("not received: " + file::printable(offer.name) + ": " + std::strerror(error));
    say({Kind::abort, static_cast<uint32_t>(error), offer.transfer});
    in_.close();
}

void FileMode::take_done(const Message &done)
{
    const bool right = out_.job().folder
                           ? out_.state() == State::offered
                           : done.number == out_.bytes() && out_.state() == State::ended &&
                                 done.value == out_.crc();
    if (out_.state() == State::none || !out_.was_mine(done) || !right)
        return;
    ++files_.sent;
    files_.sent_bytes += out_.bytes();
    if (!out_.job().folder)
        note("sent", out_.job().name, out_.bytes(), out_.crc());
    end_job({});
}

void FileMode::take_abort(const Message &abort)
{
    if (in_.is_open() && abort.transfer == in_.offer().transfer) {
        in_.close();
        return;
    }
    if (out_.state() == State::none || !out_.is_mine(abort))
        return;
    if (abort.value == ESTALE && offers_ < most_offers)
        return out_.offer_again();
    end_job("the peer says: " + std::string(std::strerror(static_cast<int>(abort.value))));
}

// What goes.

void FileMode::push_outgoing()
{
    switch (out_.state()) {
    case State::none:
        return look_for_job();
    case State::offering:
        return offer();
    case State::reading:
        if (!out_.read_some())
            fail_outgoing(out_.error());
        return;
    case State::sending:
        return push_data();
    case State::offered:
    case State::ended:
        return wait_for_peer();
    }
}

void FileMode::look_for_job()
{
    std::optional<FileJob> job = work_.take();
    if (!job)
        return;
    offers_ = 0;
    const std::string name = job->name;
    if (const std::string error = out_.open(std::move(*job)); !error.empty()) {
        ++files_.failed;
        work_.note("not sent: " + error);
        work_.ended(error);
    }
}

/// Without a peer the offer waits for one.
void FileMode::offer()
{
    if (!box_.empty())
        return;
    if (peer_takes_ == 0)
        peer_takes_ = way_.max_message();
    if (peer_takes_ == 0)
        return;
    if (peer_takes_ <= file::header_bytes)
        return end_job("the peer takes messages of " + std::to_string(peer_takes_) + " bytes only");
    ++offers_;
    asked_tsc_ = rte_rdtsc();
    say(out_.offer());
}

void FileMode::push_data()
{
    const uint64_t most = std::min(size_, peer_takes_) - file::header_bytes;
    while (out_.has_data() && box_.waiting() < burst_ && !box_.full()) {
        rte_mbuf *message = out_.next(ntbmsg_endpoint_pool(way_.endpoint), most);
        if (message == nullptr && out_.error() != 0)
            return fail_outgoing(out_.error());
        if (message == nullptr) {
            ++counters_.tx_nombuf;
            return;
        }
        box_.add(message, {});
    }
    if (out_.has_data() || box_.full())
        return;
    asked_tsc_ = rte_rdtsc();
    say(out_.end());
}

void FileMode::wait_for_peer()
{
    if (!box_.empty()) {
        asked_tsc_ = rte_rdtsc(); // it has not even been asked
        return;
    }
    const auto patience = patience_seconds * static_cast<double>(rte_get_tsc_hz());
    if (static_cast<double>(rte_rdtsc() - asked_tsc_) > patience)
        out_.offer_again();
}

/// The job is over. @param error  empty: the peer has it
void FileMode::end_job(const std::string &error)
{
    const std::string name = file::printable(out_.job().name);
    out_.close();
    if (error.empty())
        return work_.ended({});
    ++files_.failed;
    work_.note("not sent: " + name + ": " + error);
    work_.ended(name + ": " + error);
}

void FileMode::fail_outgoing(int error)
{
    Message abort = out_.end(); // for its number
    abort = {Kind::abort, static_cast<uint32_t>(error), abort.transfer};
    say(abort);
    end_job(std::strerror(error));
}

void FileMode::flush()
{
    const int sent = box_.flush(way_, counters_);
    if (sent >= 0 || sent == -ENOTCONN)
        return;
    // Too long for the peer, or broken: what follows would have a gap.
    counters_.dropped += box_.drop_all();
    if (out_.state() != State::none)
        end_job("the peer does not take messages of " + std::to_string(size_) + " bytes");
}

/// Answers that find no mbuf or no room are lost; the peer asks again.
void FileMode::say(const Message &message)
{
    rte_mbuf *mbuf = box_.full() ? nullptr
                                 : alloc_message(ntbmsg_endpoint_pool(way_.endpoint),
                                                 file::header_bytes + message.name.size());
    if (mbuf == nullptr) {
        ++counters_.tx_nombuf;
        return;
    }
    // The data room of the first mbuf is larger than the header, not than every name.
    file::encode(message, std::span<std::byte, file::header_bytes>(
                              rte_pktmbuf_mtod(mbuf, std::byte *), file::header_bytes));
    size_t at = file::header_bytes, done = 0;
    for (rte_mbuf *piece = mbuf; piece != nullptr; piece = piece->next, at = 0) {
        const size_t n = piece->data_len - at;
        std::memcpy(rte_pktmbuf_mtod_offset(piece, void *, at), message.name.data() + done, n);
        done += n;
    }
    box_.add(mbuf, {});
}

void FileMode::note(const char *what, const std::string &name, uint64_t bytes, uint32_t crc)
{
    char text[96];
    std::snprintf(text, sizeof(text), ", %" PRIu64 " bytes, CRC-32C %08" PRIx32, bytes, crc);
    work_.note(std::string(what) + " " + file::printable(name) + text);
}

std::string FileMode::report() const
{
    char text[256];
    std::snprintf(text, sizeof(text),
                  "  files       sent %" PRIu64 " of %" PRIu64 " bytes, received %" PRIu64
                  " of %" PRIu64 " bytes; %" PRIu64 " failed, %" PRIu64 " refused\n",
                  files_.sent, files_.sent_bytes, files_.received, files_.received_bytes,
                  files_.failed, files_.refused);
    std::string report = text;
    const auto line = [&](const char *what, const std::string &name, uint64_t have, uint64_t all) {
        report += std::string("  ") + what + "   " + file::printable(name) + ", " +
                  std::to_string(have) + " of " + std::to_string(all) + " bytes\n";
    };
    if (out_.state() != State::none)
        line("sending  ", out_.job().name, out_.sent(), out_.bytes());
    if (in_.is_open())
        line("receiving", in_.offer().name, in_.have(), in_.offer().number);
    return report;
}

} // namespace

std::unique_ptr<Forwarder> make_file(const Way &way, const Settings &settings)
{
    return std::make_unique<FileMode>(way, settings);
}

} // namespace echo
