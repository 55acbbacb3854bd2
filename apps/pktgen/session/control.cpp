// SPDX-License-Identifier: BSD-3-Clause
#include "session/control.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <type_traits>

#include <rte_mbuf.h>

namespace pktgen
{

namespace
{

constexpr uint32_t magic = 0x4e474b50; // "PKGN"
constexpr uint16_t version = 5;
constexpr uint16_t control_queue = 0;
constexpr uint64_t million = 1000000;
constexpr uint32_t longest_rest_ms = 50; // a stop signal is looked at behind it

/// As it crosses, in the byte order of x86. Bytes and words of their own instead of bool and enum:
/// not every bit pattern is one of those.
struct WirePoint {
    uint8_t mode, direction, operation, pattern, mix, verify, clock, confirm, served;
    uint8_t reserved[7];
    uint32_t size, size_to, burst, in_flight, queues, reserved2;
    uint64_t run_us, count;
    double rate;
};

struct WireReport {
    Sent sent;
    Received received, completed;
    uint64_t served;
    uint64_t cpu_ppm; ///< of the time
};

struct WireText {
    char text[ControlMessage::text_bytes];
};

struct Wire {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
    uint64_t run;
    uint32_t serial;
    uint16_t role;
    uint8_t channels, direct;
    int32_t cpu;
    uint32_t rest_ms, own_queues, lcores, lane, copy, most_built;
    union { // by kind
        WirePoint point;
        WireReport report;
        WireText words;
    };
};
static_assert(std::is_trivially_copyable_v<Wire> && sizeof(Wire) <= 256); // fits the ring

Point point_of(const WirePoint &wire)
{
    Point p;
    p.mode = static_cast<Mode>(wire.mode);
    p.direction = static_cast<Direction>(wire.direction);
    p.operation = static_cast<Operation>(wire.operation);
    p.pattern = static_cast<Pattern>(wire.pattern);
    p.mix = static_cast<MixKind>(wire.mix);
    p.verify = wire.verify != 0;
    p.clock = wire.clock != 0;
    p.confirm = wire.confirm != 0;
    p.served = wire.served != 0;
    p.size = wire.size;
    p.size_to = wire.size_to;
    p.burst = wire.burst;
    p.in_flight = wire.in_flight;
    p.queues = wire.queues;
    p.run_us = wire.run_us;
    p.count = wire.count;
    p.rate = wire.rate;
    return p;
}

WirePoint wire_of(const Point &p)
{
    WirePoint wire{};
    wire.mode = static_cast<uint8_t>(p.mode);
    wire.direction = static_cast<uint8_t>(p.direction);
    wire.operation = static_cast<uint8_t>(p.operation);
    wire.pattern = static_cast<uint8_t>(p.pattern);
    wire.mix = static_cast<uint8_t>(p.mix);
    wire.verify = p.verify;
    wire.clock = p.clock;
    wire.confirm = p.confirm;
    wire.served = p.served;
    wire.size = p.size;
    wire.size_to = p.size_to;
    wire.burst = p.burst;
    wire.in_flight = p.in_flight;
    wire.queues = p.queues;
    wire.run_us = p.run_us;
    wire.count = p.count;
    wire.rate = p.rate;
    return wire;
}

std::string text_of(const WireText &words)
{
    std::string text(words.text, strnlen(words.text, sizeof(words.text)));
    // It is shown on a terminal, and in a file of lines.
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return text;
}

void take_body(const Wire &wire, ControlMessage &m)
{
    switch (m.kind) {
    case Kind::begin:
        m.point = point_of(wire.point);
        break;
    case Kind::stop:
    case Kind::report:
        m.sent = wire.report.sent;
        m.received = wire.report.received;
        m.completed = wire.report.completed;
        m.served = wire.report.served;
        m.cpu_share = static_cast<double>(std::min(wire.report.cpu_ppm, million)) /
                      static_cast<double>(million);
        break;
    case Kind::hello:
    case Kind::ready:
    case Kind::copied:
        m.text = text_of(wire.words);
        break;
    case Kind::rest:
    case Kind::resting:
    case Kind::copy:
    case Kind::sent:
        break;
    }
}

void put_body(const ControlMessage &m, Wire &wire)
{
    switch (m.kind) {
    case Kind::begin:
        wire.point = wire_of(m.point);
        break;
    case Kind::stop:
    case Kind::report:
        wire.report = {m.sent, m.received, m.completed, m.served,
                       static_cast<uint64_t>(m.cpu_share * static_cast<double>(million))};
        break;
    case Kind::hello:
    case Kind::ready:
    case Kind::copied:
        wire.words = {};
        std::memcpy(wire.words.text, m.text.data(),
                    std::min(m.text.size(), sizeof(wire.words.text) - 1));
        break;
    case Kind::rest:
    case Kind::resting:
    case Kind::copy:
    case Kind::sent:
        break;
    }
}

ControlMessage message_of(const Wire &wire)
{
    ControlMessage m{static_cast<Kind>(wire.kind)};
    m.role = static_cast<Role>(wire.role);
    m.run = wire.run;
    m.serial = wire.serial;
    m.cpu = wire.cpu;
    m.queues = wire.own_queues;
    m.channels = wire.channels != 0;
    m.lcores = wire.lcores;
    m.direct = wire.direct != 0;
    m.lane = wire.lane;
    m.copy = wire.copy;
    m.most_built = wire.most_built;
    m.rest_ms = std::min(wire.rest_ms, longest_rest_ms);
    take_body(wire, m);
    return m;
}

Wire wire_of(const ControlMessage &m, Role role, uint64_t run)
{
    Wire wire{};
    wire.magic = magic;
    wire.version = version;
    wire.kind = static_cast<uint16_t>(m.kind);
    wire.role = static_cast<uint16_t>(role);
    wire.run = run;
    wire.serial = m.serial;
    wire.cpu = m.cpu;
    wire.rest_ms = m.rest_ms;
    wire.own_queues = m.queues;
    wire.channels = m.channels;
    wire.lcores = m.lcores;
    wire.direct = m.direct;
    wire.lane = m.lane;
    wire.copy = m.copy;
    wire.most_built = m.most_built;
    put_body(m, wire);
    return wire;
}

} // namespace

Control::Control(ntbmsg_endpoint *endpoint, Role role, uint64_t run)
    : endpoint_(endpoint), role_(role), run_(run)
{
}

int Control::send(const ControlMessage &message)
{
    rte_mbuf *mbuf = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(endpoint_));
    if (mbuf == nullptr)
        return -EAGAIN; // they come back when the peer has taken what was sent
    const Wire wire = wire_of(message, role_, run_);
    char *room = rte_pktmbuf_append(mbuf, sizeof(wire));
    if (room == nullptr) {
        rte_pktmbuf_free(mbuf);
        return -EMSGSIZE;
    }
    std::memcpy(room, &wire, sizeof(wire));
    const int sent = ntbmsg_queue_send_burst(endpoint_, control_queue, &mbuf, nullptr, 1);
    if (sent == 1)
        return 0;
    rte_pktmbuf_free(mbuf);
    return sent < 0 ? sent : -EAGAIN;
}

std::optional<ControlMessage> Control::poll()
{
    rte_mbuf *mbuf = nullptr;
    if (ntbmsg_queue_recv_burst(endpoint_, control_queue, &mbuf, nullptr, 1) != 1)
        return std::nullopt;
    std::optional<ControlMessage> message = accept(mbuf);
    rte_pktmbuf_free(mbuf);
    return message;
}

std::optional<ControlMessage> Control::accept(const rte_mbuf *mbuf)
{
    Wire wire{}; // the one copy that is looked at: the peer may still write to the mbuf
    const void *data =
        mbuf->pkt_len == sizeof(wire) ? rte_pktmbuf_read(mbuf, 0, sizeof(wire), &wire) : nullptr;
    if (data == nullptr) {
        refusal_ = "the peer is no ntbmsg-pktgen of this version";
        return std::nullopt;
    }
    if (data != &wire)
        std::memcpy(&wire, data, sizeof(wire));
    if (wire.magic != magic || wire.version != version || wire.run == run_ ||
        wire.kind >= kind_count || wire.role > static_cast<uint16_t>(Role::client)) {
        refusal_ = "the peer is no ntbmsg-pktgen of this version";
        return std::nullopt;
    }
    return message_of(wire);
}

uint64_t new_run()
{
    std::random_device device;
    return uint64_t{device()} << 32 | device();
}

} // namespace pktgen
