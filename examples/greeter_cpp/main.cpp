// SPDX-License-Identifier: BSD-3-Clause
// The same server and client as greeter_c, which they can talk to, in C++20: owners instead of
// closing by hand, spans instead of pointers and counts. D is a folder of your own.
//
//     greeter_cpp -l 0 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=$D/cable -- serve 3
//     greeter_cpp -l 1 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=$D/cable -- greet 3
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <list>
#include <span>
#include <string>
#include <string_view>

#include <rte_eal.h>

#include <ntbmsg.hpp>

namespace
{

constexpr const char *device = "raw_plx_ntb0";
constexpr uint16_t port = 7;
constexpr size_t burst = 32;
constexpr unsigned long most_channels = 1000;
constexpr std::chrono::seconds peer_timeout{30};

/// One end of a channel, with what it says when it is open.
struct Talk {
    ntbmsg::Channel channel;
    std::string greeting;
};

/// Owners go in the opposite order of their declaration: channels first, the endpoint last.
class Host
{
public:
    explicit Host(bool serves) : serves_(serves) {}

    /// @return 0 or a negative errno
    int run(unsigned long channels)
    {
        ntbmsg::EndpointOptions options;
        options.workers = 1;
        int rc = serves_ ? listener_.open(port, most_channels) : 0; // before a client is there
        if (rc == 0)
            rc = endpoint_.open(device, options);
        if (rc == 0)
            rc = endpoint_.wait_connected(30'000);
        if (rc != 0)
            return rc;
        worker_ = ntbmsg::Worker::of(endpoint_, 0);
        rc = set_.create(worker_);
        for (unsigned long i = 0; rc == 0 && !serves_ && i < channels; ++i)
            rc = connect("guest " + std::to_string(i));
        while (rc == 0 && done_ < channels)
            rc = step();
        std::cout << done_ << " channels came to their end, " << talks_.size()
                  << " are still open\n";
        return rc == 0 && serves_ ? await_leave() : rc;
    }

private:
    bool too_late() const { return std::chrono::steady_clock::now() > deadline_; }

    int connect(std::string greeting)
    {
        Talk &talk = talks_.emplace_back();
        talk.greeting = std::move(greeting);
        ntbmsg::ChannelOptions options;
        options.set = set_.get();
        options.user = &talk;
        return talk.channel.connect(worker_, port, options);
    }

    int accept_all()
    {
        ntbmsg_request request;
        while (listener_.poll(worker_, request) == 1) {
            Talk &talk = talks_.emplace_back();
            ntbmsg::ChannelOptions options;
            options.set = set_.get();
            options.user = &talk;
            const int rc = talk.channel.accept(request, options);
            if (rc != 0)
                talks_.pop_back();
            if (rc != 0 && rc != -ENOENT) // ENOENT: it has given up meanwhile
                return rc;
        }
        return 0;
    }

    /// One poll, and what it returned.
    int step()
    {
        std::array<ntbmsg_ready, burst> ready;
        const int n = set_.poll(ready);
        for (int i = 0; i < n; ++i)
            if (const int rc = handle(ready[static_cast<size_t>(i)]); rc != 0)
                return rc;
        if (too_late())
            return -ETIMEDOUT;
        return serves_ ? accept_all() : 0;
    }

    int handle(const ntbmsg_ready &ready)
    {
        Talk &talk = *static_cast<Talk *>(ready.user);
        int rc = 0;
        if ((ready.events & NTBMSG_ANSWERED) != 0)
            rc = talk.channel.state() == NTBMSG_CHANNEL_OPEN ? send(talk, talk.greeting)
                                                             : -ECONNREFUSED;
        if (rc == 0 && (ready.events & NTBMSG_READABLE) != 0)
            rc = receive(talk);
        if (rc == -ESHUTDOWN) { // the peer says no more; what was sent to it still arrives
            talks_.remove_if([&](const Talk &t) { return &t == &talk; });
            ++done_;
            return 0;
        }
        return rc == 0 && (ready.events & NTBMSG_ENDED) != 0 ? -ECONNRESET : rc;
    }

    /// @return 0, -ESHUTDOWN, or another negative errno
    int receive(Talk &talk)
    {
        ntbmsg::Message message;
        int got;
        while ((got = talk.channel.recv(message)) == 1) {
            const auto data = message.data();
            const std::string text(reinterpret_cast<const char *>(data.data()), data.size());
            if (!serves_) {
                std::cout << "answer: " << text << '\n';
                talk.channel.shutdown(); // nothing more to say
                continue;
            }
            std::cout << "heard: " << text << '\n';
            if (const int rc = send(talk, "welcome, " + text); rc != 0)
                return rc;
        }
        return got;
    }

    /// A short count is back-pressure: polling takes the peer's credit in.
    int send(Talk &talk, std::string_view text)
    {
        ntbmsg::Message message = ntbmsg::Message::from(endpoint_.pool());
        if (!message)
            return -ENOMEM;
        const auto room =
            message.append(static_cast<uint16_t>(std::min<size_t>(text.size(), 1024)));
        std::memcpy(room.data(), text.data(), room.size());
        int sent;
        while ((sent = talk.channel.send(message)) == 0 && !too_late())
            worker_.poll();
        return sent == 1 ? 0 : sent == 0 ? -ETIMEDOUT : sent;
    }

    /// Until the client has taken all and gone: what lies unread in its memory goes with this host.
    int await_leave()
    {
        ntbmsg_event event;
        while (!too_late()) {
            worker_.poll();
            if (endpoint_.event_poll(event) == 1 && event == NTBMSG_EVENT_LOST)
                return 0;
        }
        return -ETIMEDOUT;
    }

    const bool serves_;
    const std::chrono::steady_clock::time_point deadline_ =
        std::chrono::steady_clock::now() + 2 * peer_timeout;
    unsigned long done_ = 0;
    ntbmsg::Endpoint endpoint_;
    ntbmsg::Listener listener_;
    ntbmsg::Worker worker_;
    ntbmsg::PollSet set_;
    std::list<Talk> talks_;
};

int run(std::span<char *> arguments)
{
    const std::string_view role = arguments.size() == 3 ? arguments[1] : "";
    const unsigned long channels =
        arguments.size() == 3 ? std::strtoul(arguments[2], nullptr, 10) : 0;
    if ((role != "serve" && role != "greet") || channels < 1 || channels > most_channels) {
        std::cerr << "usage: greeter_cpp [EAL options] -- serve|greet CHANNELS (1 to "
                  << most_channels << ")\n";
        return -EINVAL;
    }
    const int rc = Host(role == "serve").run(channels);
    if (rc != 0)
        std::cerr << "greeter_cpp: " << std::strerror(-rc) << '\n';
    return rc;
}

} // namespace

int main(int argc, char **argv)
{
    const int used = rte_eal_init(argc, argv);
    if (used < 0)
        return EXIT_FAILURE;
    const int rc = run(std::span(argv + used, static_cast<size_t>(argc - used)));
    rte_eal_cleanup();
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
