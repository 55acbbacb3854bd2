// SPDX-License-Identifier: BSD-3-Clause
// The messages of the two ends between measurements, on queue 0. Whatever comes is a peer's
// word: parse() accepts what has the right length, magic, version and kind, and the fields of a
// point that check() accepts; texts end where they have to.
#ifndef PKTGEN_SESSION_CONTROL_HPP
#define PKTGEN_SESSION_CONTROL_HPP

#include <cstdint>
#include <optional>
#include <string>

#include <ntbmsg.h>

#include "measure/work.hpp"
#include "point/point.hpp"

namespace pktgen
{

enum class Kind : uint16_t {
    hello,   ///< from both, whenever they meet; the server answers a client's
    begin,   ///< client: prepare for this point
    ready,   ///< server: go ahead, or why not
    stop,    ///< client: I have sent so much; stop and report when you have it
    report,  ///< server: what I sent and received on one queue; one for each
    rest,    ///< client: leave your CPU alone for so long
    resting, ///< server: from now on
    copy,    ///< client: copy long messages by this engine; the link comes anew
    copied,  ///< server: I will, now; or why not
    sent,    ///< server: all that I was to send at this point, before the client stops it
};
inline constexpr unsigned kind_count = 10;

enum class Role : uint16_t { server, client };

struct ControlMessage {
    static constexpr size_t text_bytes = 128;

    Kind kind;
    Role role = Role::client; ///< of the sender
    uint64_t run = 0;         ///< of the sender: random
    uint32_t serial = 0;      ///< number of the point that it is about
    int32_t cpu = -1;         ///< hello: where the sender polls
    uint32_t queues = 0;      ///< hello: data queues of the sender
    bool channels = false;    ///< hello: it has a worker behind each
    uint32_t most_built = 0;  ///< hello: bytes of a message that can be built at the sender
    uint32_t lcores = 0;      ///< ready: that drive the sender's queues
    bool direct = false;      ///< ready: the client stores into the exposed memory itself
    uint32_t lane = 0;        ///< report: number of the queue
    uint32_t copy = 0;        ///< copy: enum CopyMode
    uint32_t rest_ms = 0;     ///< rest
    Point point;              ///< begin
    Sent sent;                ///< stop, report
    Received received;        ///< report
    Received completed;       ///< report: of operations that were posted
    uint64_t served = 0;      ///< report: operations that the sender's workers did for the client
    double cpu_share = 1; ///< report: which part of their time the sender's lcores had their CPUs
    std::string text; ///< hello: id of the machine's start; ready, copied: why not, empty for yes
};

class Control
{
public:
    Control(ntbmsg_endpoint *endpoint, Role role, uint64_t run);

    /// Does not wait.
    /// @return 0, -EAGAIN while the peer takes nothing more, or another negative errno
    int send(const ControlMessage &message);

    /// The next one that has come; sets refusal() where it is none of ours.
    std::optional<ControlMessage> poll();

    /// Why the peer is no peer for us; empty when it is.
    const std::string &refusal() const { return refusal_; }
    void forget_refusal() { refusal_.clear(); }
    uint64_t run() const { return run_; }

private:
    std::optional<ControlMessage> accept(const rte_mbuf *message);

    ntbmsg_endpoint *const endpoint_;
    const Role role_;
    const uint64_t run_;
    std::string refusal_;
};

/// A random number for this process.
uint64_t new_run();

} // namespace pktgen

#endif
