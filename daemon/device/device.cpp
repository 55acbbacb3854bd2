// SPDX-License-Identifier: BSD-3-Clause
#include "device/device.hpp"

#include "server/log.hpp"

#include <ntbmsg.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace ntbd
{

namespace
{
constexpr uint16_t port = 1;
// Time-outs of channels, and events of the endpoint that wake nobody, are looked at this often.
constexpr int recheck_ms = 100;
constexpr uint32_t endpoint_mbufs = 512;

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
struct Device::Link {
    Link(const std::string &path, Mailbox &box) : socket(path), mailbox(box) {}

    int open(const std::string &device);
    void close();
    void turn();
    void take_events();
    void connect();
    void accept();
    void handle(const ntbmsg_ready &ready);
    void introduce();
    void hear();
    void lose();

    const std::string &socket;
    Mailbox &mailbox;
    ntbmsg_endpoint *endpoint = nullptr;
    ntbmsg_worker *worker = nullptr;
    ntbmsg_listener *listener = nullptr;
    ntbmsg_poll_set *set = nullptr;
    ntbmsg_channel *out = nullptr; ///< this daemon introduces itself on it
    ntbmsg_channel *in = nullptr;  ///< the peer's daemon does
    bool connected = false;
    int64_t connect_from_ms = 0; ///< a peer that refuses is not asked all the time
};

int Device::Link::open(const std::string &device)
{
    ntbmsg_endpoint_options options;
    ntbmsg_endpoint_options_init(&options);
    options.queues = 0;
    options.workers = 1;
    options.channels = 16;
    options.rx_mbufs = endpoint_mbufs;
    options.tx_mbufs = endpoint_mbufs;
    int status = ntbmsg_endpoint_open(device.c_str(), &options, &endpoint);
    if (status != 0)
        return status;
    worker = ntbmsg_endpoint_worker(endpoint, 0);
    status = ntbmsg_listener_open(port, 0, &listener);
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
    ntbmsg_endpoint_close_linger(endpoint, 0, nullptr);
    endpoint = nullptr;
}

void Device::Link::turn()
{
    ntbmsg_ready ready[8];
    take_events();
    const int count = ntbmsg_poll_set_poll(set, ready, 8);
    for (int i = 0; i < count; i++)
        handle(ready[i]);
    accept();
    if (connected && out == nullptr && now_ms() >= connect_from_ms)
        connect();
}

void Device::Link::take_events()
{
    ntbmsg_event event;
    while (ntbmsg_endpoint_event_poll(endpoint, &event) == 1) {
        if (event == NTBMSG_EVENT_CONNECTED) {
            connected = true;
        } else if (event == NTBMSG_EVENT_LOST) {
            connected = false;
            lose();
        } else if (event == NTBMSG_EVENT_REFUSED) {
            char why[256];
            if (ntbmsg_endpoint_link_reason_get(endpoint, why, sizeof(why)) == 0)
                log("the peer host was refused: %s", why);
        }
    }
}

void Device::Link::lose()
{
    ntbmsg_channel_close(out);
    ntbmsg_channel_close(in);
    out = nullptr;
    in = nullptr;
    connect_from_ms = now_ms() + recheck_ms;
    LinkNews news = {LinkNews::Kind::lost};
    mailbox.put(news);
}

void Device::Link::connect()
{
    ntbmsg_channel_options options;
    ntbmsg_channel_options_init(&options);
    options.set = set;
    ntbmsg_channel_connect(worker, port, &options, &out);
}

void Device::Link::accept()
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

// A channel that ends before the link does: the peer's daemon does not listen yet, or has given up.
// It is connected to again after a while.
void Device::Link::handle(const ntbmsg_ready &ready)
{
    if (ready.channel == out && (ready.events & NTBMSG_ANSWERED) != 0 &&
        ntbmsg_channel_state_get(out) == NTBMSG_CHANNEL_OPEN)
        introduce();
    if (ready.channel == in && (ready.events & NTBMSG_READABLE) != 0)
        hear();
    const ntbmsg_channel_state state = ntbmsg_channel_state_get(ready.channel);
    if (state != NTBMSG_CHANNEL_OPEN && state != NTBMSG_CHANNEL_CONNECTING &&
        (ready.channel == out || ready.channel == in))
        lose();
}

void Device::Link::introduce()
{
    LinkNews news = {LinkNews::Kind::introducing};
    rte_mbuf *message = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(endpoint));
    char *room = message != nullptr ? rte_pktmbuf_append(message, sizeof(news.own)) : nullptr;
    if (room == nullptr || !introduce_self(socket, &news.own)) {
        log("cannot introduce this daemon to its peer");
        rte_pktmbuf_free(message);
        return;
    }
    memcpy(room, &news.own, sizeof(news.own));
    // The server knows the secret before anybody can show it.
    mailbox.put(news);
    if (ntbmsg_channel_send_burst(out, &message, nullptr, 1) != 1)
        rte_pktmbuf_free(message);
}

void Device::Link::hear()
{
    rte_mbuf *message;
    while (in != nullptr && ntbmsg_channel_recv_burst(in, &message, nullptr, 1) == 1) {
        char copy[sizeof(Introduction)];
        LinkNews news = {LinkNews::Kind::introduced};
        // What lies in a window can still be changed by the peer.
        const void *bytes = rte_pktmbuf_read(message, 0, sizeof(copy), copy);
        if (bytes != nullptr && bytes != copy)
            memcpy(copy, bytes, sizeof(copy));
        if (bytes != nullptr && introduction_of(copy, rte_pktmbuf_pkt_len(message), &news.peer))
            mailbox.put(news);
        else
            log("what the peer host sent is no introduction of a daemon of this version");
        rte_pktmbuf_free(message);
    }
}

Device::Device(std::string name, std::string socket, Mailbox &mailbox)
    : name_(std::move(name)), socket_(std::move(socket)), mailbox_(mailbox)
{
}

Device::~Device()
{
    stop();
}

int Device::start()
{
    link_ = new Link(socket_, mailbox_);
    const int status = link_->open(name_);
    if (status != 0) {
        delete link_;
        link_ = nullptr;
        return status;
    }
    stop_ = eventfd(0, EFD_CLOEXEC);
    thread_ = std::thread([this] {
        pollfd fds[2] = {{stop_, POLLIN, 0}, {ntbmsg_worker_event_fd(link_->worker), POLLIN, 0}};
        while (fds[0].revents == 0) {
            link_->turn();
            if (ntbmsg_worker_arm(link_->worker) == 1)
                continue;
            poll(fds, 2, recheck_ms);
            ntbmsg_worker_disarm(link_->worker);
        }
    });
    return 0;
}

void Device::stop()
{
    if (thread_.joinable()) {
        eventfd_write(stop_, 1);
        thread_.join();
        close(stop_);
    }
    if (link_ != nullptr)
        link_->close();
    delete link_;
    link_ = nullptr;
}

} // namespace ntbd
