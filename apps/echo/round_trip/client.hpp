// SPDX-License-Identifier: BSD-3-Clause
// The sending side's engine: some messages in flight per queue, each kept until its echo has been
// compared with it.
#ifndef ECHO_ROUND_TRIP_CLIENT_HPP
#define ECHO_ROUND_TRIP_CLIENT_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <ntbmsg.h>

#include "file_source.hpp"
#include "options/command_line.hpp"
#include "round_trip/report.hpp"

struct rte_mbuf;

namespace echo
{

/// Message g travels on queue g mod queues, as number g div queues of that queue: so each queue
/// keeps its own order, and the echoes can be put together again in the order of the file.
class Client
{
public:
    /// @param out  where what comes back is written, or NULL
    Client(ntbmsg_endpoint *endpoint, const Options &options, app::FileSource &source,
           std::FILE *out);
    ~Client();
    Client(const Client &) = delete;
    Client &operator=(const Client &) = delete;

    /// Sends everything and waits for its echoes. @param report  error is empty when all is well
    void run(Report &report);

private:
    struct Slot {
        rte_mbuf *going; ///< ready to be sent
        rte_mbuf *back;  ///< the echo
        uint64_t sent_tsc;
        size_t bytes;
    };
    struct Queue {
        uint64_t sent = 0, received = 0;
    };

    bool wants_more() const;
    void read_ahead();
    bool read_piece(std::byte *into);
    bool stage();
    void send(uint16_t q);
    void note_send_error(uint16_t q, int error);
    void receive(uint16_t q);
    void accept(uint16_t q, rte_mbuf *mbuf, const ntbmsg_meta &meta, uint64_t now);
    void deliver();
    std::string compare(const Slot &slot, const std::byte *sent);
    void look_around();
    void look_at_events();
    void show_progress(double seconds);
    void fail(std::string error);

    uint64_t global(uint16_t q, uint64_t number) const { return number * queue_count_ + q; }
    Slot &slot_of(uint64_t message) { return slots_[message % slots_.size()]; }
    std::byte *data_of(uint64_t message) { return &data_[message % slots_.size() * options_.size]; }

    ntbmsg_endpoint *const endpoint_;
    const Options &options_;
    app::FileSource &source_;
    std::FILE *const out_;
    const uint64_t run_; ///< random: differs from other runs'
    const uint16_t queue_count_;
    std::vector<Slot> slots_;
    std::unique_ptr<std::byte[]> data_; ///< what was sent, one piece of options_.size a slot
    std::vector<Queue> queues_;

    uint64_t staged_ = 0;    ///< messages read from the file
    uint64_t delivered_ = 0; ///< messages compared
    size_t read_bytes_ = 0;  ///< of the message that was read and found no mbuf yet
    bool source_ended_ = false;
    bool stopping_ = false; ///< a signal or the time limit: nothing new is sent
    bool interrupted_ = false;

    uint64_t start_tsc_ = 0;
    uint64_t last_echo_tsc_ = 0;
    uint64_t alive_tsc_ = 0;   ///< what the time-out counts from
    uint64_t offline_tsc_ = 0; ///< since when a connected peer has taken nothing from a queue
    uint64_t last_delivered_ = 0;
    double next_progress_ = 1;
    Report *report_ = nullptr;
};

} // namespace echo

#endif
