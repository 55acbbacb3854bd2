// SPDX-License-Identifier: BSD-3-Clause
#include "device/device.hpp"

#include "device/channel_pipe.hpp"
#include "server/log.hpp"

#include <ntbmsg.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

namespace ntbd
{

namespace
{
constexpr uint16_t port = 1;       // of introductions and messages between daemons
constexpr uint16_t relay_port = 2; // of connections that are carried
// A peer that does not answer is asked again after this time.
constexpr int recheck_ms = 100;
// Where nothing is carried: for introductions.
constexpr uint32_t few_channels = 16;
constexpr uint32_t few_mbufs = 512;
constexpr uint32_t relay_tx_mbufs = 2048;

int64_t now_ms()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}
} // namespace

Eal::Eal(const std::vector<std::string> &arguments)
{
    std::vector<std::string> words = {"ntbd"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char *> pointers;
    for (std::string &word : words)
        pointers.push_back(word.data());
    running_ = rte_eal_init(static_cast<int>(pointers.size()), pointers.data()) >= 0;
}

Eal::~Eal()
{
    if (running_)
        rte_eal_cleanup();
}

/// What the thread works on.
struct Device::Link : Bridge {
    Link(const std::string &path, CarrierChoice choice) : socket(path), carrier_choice(choice) {}

    bool poll(Carrier &carrier) override;
    int event_fd() const override { return ntbmsg_worker_event_fd(worker); }
    bool arm() override { return ntbmsg_worker_arm(worker) == 0; }
    void disarm() override { ntbmsg_worker_disarm(worker); }
    std::unique_ptr<Pipe> connect(const Ticket &ticket, Relay *relay) override;
    Sent send(const Token &epoch, const ntbc::Message &message) override;
    void drop_peer(const Token &epoch) override;

    int open(const std::string &device);
    void close();
    void take_events(Carrier &carrier);
    void connect_peer();
    void accept(Carrier &carrier);
    void accept_relays(Carrier &carrier);
    void handle(Carrier &carrier, const ntbmsg_ready &ready);
    void introduce(Carrier &carrier);
    void hear(Carrier &carrier);
    void hear_one(Carrier &carrier, const void *bytes, size_t count);
    void lose(Carrier &carrier);
    int send(const void *bytes, size_t count);

    const std::string &socket;
    CarrierChoice carrier_choice;
    ntbmsg_endpoint *endpoint = nullptr;
    ntbmsg_worker *worker = nullptr;
    ntbmsg_listener *listener = nullptr;
    ntbmsg_listener *relays = nullptr; ///< NULL: nothing is carried
    ntbmsg_poll_set *set = nullptr;
    ntbmsg_channel *out = nullptr; ///< of this daemon's introduction and messages
    ntbmsg_channel *in = nullptr;  ///< the peer's daemon does
    bool connected = false;
    bool introduced = false; ///< the peer has introduced itself
    bool heard_all = true;   ///< of what has arrived on `in`
    bool dropped = false;    ///< the peer does not keep to the protocol
    std::optional<Token> epoch;
    int64_t connect_from_ms = 0; ///< a peer that refuses is not asked all the time
};

int Device::Link::open(const std::string &device)
{
    ntbmsg_endpoint_options options;
    ntbmsg_endpoint_options_init(&options);
    const bool carries = carrier_choice != CarrierChoice::direct;
    options.queues = 0;
    options.workers = 1;
    options.channels = carries ? 0 : few_channels;
    options.rx_mbufs = carries ? 0 : few_mbufs;
    options.tx_mbufs = carries ? relay_tx_mbufs : few_mbufs;
    int status = ntbmsg_endpoint_open(device.c_str(), &options, &endpoint);
    if (status != 0)
        return status;
    worker = ntbmsg_endpoint_worker(endpoint, 0);
    status = ntbmsg_listener_open(port, 0, &listener);
    if (status == 0 && carries)
        status = ntbmsg_listener_open(relay_port, 1024, &relays);
    if (status == 0)
        status = ntbmsg_poll_set_create(worker, &set);
    if (status != 0)
        close();
    return status;
}

void Device::Link::close()
{
    ntbmsg_channel_close(out);
    ntbmsg_channel_close(in);
    out = nullptr;
    in = nullptr;
    ntbmsg_poll_set_destroy(set);
    ntbmsg_listener_close(listener);
    ntbmsg_listener_close(relays);
    ntbmsg_endpoint_close_linger(endpoint, 0, nullptr);
    endpoint = nullptr;
}

bool Device::Link::poll(Carrier &carrier)
{
    ntbmsg_ready ready[32];
    take_events(carrier);
    const int count = ntbmsg_poll_set_poll(set, ready, 32);
    for (int i = 0; i < count; i++)
        handle(carrier, ready[i]);
    accept(carrier);
    if (relays != nullptr)
        accept_relays(carrier);
    if (!heard_all)
        hear(carrier);
    if (std::exchange(dropped, false))
        lose(carrier);
    if (connected && out == nullptr && now_ms() >= connect_from_ms)
        connect_peer();
    return count > 0;
}

void Device::Link::take_events(Carrier &carrier)
{
    ntbmsg_event event;
    while (ntbmsg_endpoint_event_poll(endpoint, &event) == 1) {
        if (event == NTBMSG_EVENT_CONNECTED) {
            connected = true;
        } else if (event == NTBMSG_EVENT_LOST) {
            connected = false;
            lose(carrier);
        } else if (event == NTBMSG_EVENT_REFUSED) {
            char why[256];
            if (ntbmsg_endpoint_link_reason_get(endpoint, why, sizeof(why)) == 0)
                log("the peer host was refused: %s", why);
        }
    }
}

void Device::Link::lose(Carrier &carrier)
{
    ntbmsg_channel_close(out);
    ntbmsg_channel_close(in);
    out = nullptr;
    in = nullptr;
    introduced = false;
    heard_all = true;
    epoch.reset();
    connect_from_ms = now_ms() + recheck_ms;
    carrier.lose();
    carrier.say({LinkNews::Kind::lost});
}

void Device::Link::connect_peer()
{
    ntbmsg_channel_options options;
    ntbmsg_channel_options_init(&options);
    options.set = set;
    ntbmsg_channel_connect(worker, port, &options, &out);
}

void Device::Link::accept(Carrier &)
{
    ntbmsg_channel_options options;
    ntbmsg_request request;
    ntbmsg_channel_options_init(&options);
    options.set = set;
    while (ntbmsg_listener_poll(listener, worker, &request) == 1) {
        // A second one before the first has ended is no daemon.
        if (in != nullptr)
            ntbmsg_request_reject(&request, 0, nullptr, 0);
        else
            ntbmsg_channel_accept(&request, &options, &in);
    }
}

void Device::Link::accept_relays(Carrier &carrier)
{
    ntbmsg_channel_options options;
    ntbmsg_request request;
    ntbmsg_channel_options_init(&options);
    options.set = set;
    while (ntbmsg_listener_poll(relays, worker, &request) == 1) {
        Ticket ticket;
        ntbmsg_channel *channel = nullptr;
        Relay *const relay = carrier.admit(request.private_data, request.private_bytes);
        options.user = relay;
        if (relay == nullptr) {
            ntbmsg_request_reject(&request, 0, nullptr, 0);
            continue;
        }
        memcpy(&ticket, request.private_data, sizeof(ticket));
        // Without credit it is rejected, and the peer's daemon says that there is none.
        if (ntbmsg_channel_accept(&request, &options, &channel) == 0)
            carrier.join(relay, std::make_unique<ChannelPipe>(channel, endpoint),
                         ticket.ring_bytes);
    }
}

// A channel of the daemons that ends before the link does: the peer's daemon does not listen yet,
// or has given up. It is connected to again after a while.
void Device::Link::handle(Carrier &carrier, const ntbmsg_ready &ready)
{
    if (ready.user != nullptr) {
        uint32_t events = 0;
        if ((ready.events & ~NTBMSG_WRITABLE) != 0)
            events |= Pipe::readable;
        if ((ready.events & (NTBMSG_WRITABLE | NTBMSG_ANSWERED)) != 0)
            events |= Pipe::writable;
        carrier.ready(static_cast<Relay *>(ready.user), events);
        return;
    }
    if (ready.channel == out && (ready.events & NTBMSG_ANSWERED) != 0 &&
        ntbmsg_channel_state_get(out) == NTBMSG_CHANNEL_OPEN)
        introduce(carrier);
    if (ready.channel == in && (ready.events & NTBMSG_READABLE) != 0)
        hear(carrier);
    const ntbmsg_channel_state state = ntbmsg_channel_state_get(ready.channel);
    if (state != NTBMSG_CHANNEL_OPEN && state != NTBMSG_CHANNEL_CONNECTING &&
        (ready.channel == out || ready.channel == in))
        lose(carrier);
}

/// @return 1 sent, 0 not now, negative: the channel has ended
int Device::Link::send(const void *bytes, size_t count)
{
    rte_mbuf *message = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(endpoint));
    char *room =
        message != nullptr ? rte_pktmbuf_append(message, static_cast<uint16_t>(count)) : nullptr;
    if (room == nullptr) {
        rte_pktmbuf_free(message);
        return 0;
    }
    memcpy(room, bytes, count);
    const int sent = ntbmsg_channel_send_burst(out, &message, nullptr, 1);
    if (sent != 1)
        rte_pktmbuf_free(message);
    return sent;
}

void Device::Link::introduce(Carrier &carrier)
{
    LinkNews news = {LinkNews::Kind::introducing};
    if (!introduce_self(socket, carrier_choice, &news.own)) {
        log("cannot introduce this daemon to its peer");
        return;
    }
    // The server knows the secret before anybody can show it.
    carrier.say(news);
    epoch = news.own.token;
    if (send(&news.own, sizeof(news.own)) != 1)
        log("cannot introduce this daemon to its peer");
}

void Device::Link::hear(Carrier &carrier)
{
    rte_mbuf *message;
    heard_all = false;
    // A server that is behind holds the peer's daemon back, by the credit of the channel.
    while (in != nullptr && !carrier.is_behind()) {
        if (ntbmsg_channel_recv_burst(in, &message, nullptr, 1) != 1) {
            heard_all = true;
            return;
        }
        char copy[std::max(sizeof(Introduction), sizeof(ntbc::Message))];
        const size_t count = rte_pktmbuf_pkt_len(message);
        // What lies in a window can still be changed by the peer.
        const void *bytes = count <= sizeof(copy)
                                ? rte_pktmbuf_read(message, 0, static_cast<uint32_t>(count), copy)
                                : nullptr;
        if (bytes != nullptr && bytes != copy)
            memcpy(copy, bytes, count);
        hear_one(carrier, copy, bytes != nullptr ? count : 0);
        rte_pktmbuf_free(message);
    }
}

void Device::Link::hear_one(Carrier &carrier, const void *bytes, size_t count)
{
    LinkNews news = {introduced ? LinkNews::Kind::message : LinkNews::Kind::introduced};
    const bool is_right = introduced ? ntbc::message_of(bytes, count, &news.message)
                                     : introduction_of(bytes, count, &news.peer);
    if (is_right) {
        introduced = true;
        carrier.say(news);
        return;
    }
    log(introduced ? "what the peer's daemon sent is no message of this version"
                   : "what the peer host sent is no introduction of a daemon of this version");
    dropped = introduced;
}

Bridge::Sent Device::Link::send(const Token &of, const ntbc::Message &message)
{
    if (out == nullptr || epoch != of)
        return Sent::stale;
    const int sent = send(&message, sizeof(message));
    return sent == 1 ? Sent::sent : sent == 0 ? Sent::later : Sent::stale;
}

void Device::Link::drop_peer(const Token &of)
{
    dropped = dropped || epoch == of;
}

std::unique_ptr<Pipe> Device::Link::connect(const Ticket &ticket, Relay *relay)
{
    ntbmsg_channel_options options;
    ntbmsg_channel_options_init(&options);
    ntbmsg_channel *channel = nullptr;
    options.set = set;
    options.user = relay;
    options.private_data = &ticket;
    options.private_bytes = sizeof(ticket);
    if (relays == nullptr || ntbmsg_channel_connect(worker, relay_port, &options, &channel) != 0)
        return nullptr;
    return std::make_unique<ChannelPipe>(channel, endpoint);
}

Device::Device(std::string name, std::string socket, CarrierChoice carrier, Mailbox &mailbox)
    : name_(std::move(name)), socket_(std::move(socket)), carrier_choice_(carrier),
      mailbox_(mailbox)
{
}

Device::~Device()
{
    stop();
}

int Device::start()
{
    link_ = std::make_unique<Link>(socket_, carrier_choice_);
    const int status = link_->open(name_);
    if (status != 0) {
        link_.reset();
        return status;
    }
    carrier_ = std::make_unique<Carrier>(*link_, mailbox_);
    thread_ = std::thread([this] {
        if (!carrier_->run())
            log("the thread of the device cannot run");
    });
    return 0;
}

void Device::stop()
{
    if (thread_.joinable()) {
        carrier_->stop();
        thread_.join();
    }
    if (link_ != nullptr)
        link_->close();
    link_.reset();
}

Carrier::Figures Device::figures() const
{
    return carrier_ != nullptr ? carrier_->figures() : Carrier::Figures{};
}

} // namespace ntbd
