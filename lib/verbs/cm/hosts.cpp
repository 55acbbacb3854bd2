// SPDX-License-Identifier: BSD-3-Clause
#include "cm/hosts.hpp"

#include <cerrno>
#include <cstdio>

#include <sys/random.h>
#include <unistd.h>

#include "config/config.hpp"

namespace ntb::verbs::cm
{
namespace
{

// A socket that nothing is sent by: it asks the machine's routing.
class Probe
{
public:
    explicit Probe(const Address &address)
        : descriptor_(::socket(is_ipv4(address) ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0))
    {
    }
    ~Probe()
    {
        if (descriptor_ >= 0)
            ::close(descriptor_);
    }
    Probe(const Probe &) = delete;
    Probe &operator=(const Probe &) = delete;

    bool bind(Address address) const
    {
        address.port = 0;
        const sockaddr_in6 to = to_sockaddr(address);
        return descriptor_ >= 0 && ::bind(descriptor_, as_sockaddr(to), size_of(address)) == 0;
    }
    bool connect(Address address, Address &source) const
    {
        if (address.port == 0)
            address.port = 1; // any
        const sockaddr_in6 to = to_sockaddr(address);
        sockaddr_in6 from = {};
        socklen_t size = sizeof(from);
        return descriptor_ >= 0 && ::connect(descriptor_, as_sockaddr(to), size_of(address)) == 0 &&
               getsockname(descriptor_, reinterpret_cast<sockaddr *>(&from), &size) == 0 &&
               from_sockaddr(from, source);
    }

private:
    static const sockaddr *as_sockaddr(const sockaddr_in6 &room)
    {
        return reinterpret_cast<const sockaddr *>(&room);
    }
    static socklen_t size_of(const Address &address)
    {
        return is_ipv4(address) ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    }

    int descriptor_;
};

struct Text {
    char text[INET6_ADDRSTRLEN] = "?";

    explicit Text(const Address &address)
    {
        const bool four = is_ipv4(address);
        inet_ntop(four ? AF_INET : AF_INET6, address.bytes + (four ? sizeof(mapped_prefix) : 0),
                  text, sizeof(text));
    }
};

} // namespace

Hosts::Hosts(std::string socket, std::uint64_t guid, std::uint32_t index)
    : config_(std::make_unique<socket::Config>()), socket_(std::move(socket)), guid_(guid),
      index_(index)
{
}

Hosts::~Hosts() = default;

std::string Hosts::load(const char *path)
{
    map_ = path;
    socket::Config::Error error;
    if (config_->load(path, &error))
        return {};
    char line[16] = "";
    if (error.line != 0)
        snprintf(line, sizeof(line), ":%u", error.line);
    return map_ + line + ": " + error.text;
}

int Hosts::check_peer(const Address &peer)
{
    socket::Address wanted;
    std::memcpy(wanted.bytes, peer.bytes, sizeof(wanted.bytes));
    wanted.port = peer.port;
    const char *const daemon = config_->daemon_of(wanted);
    if (!daemon)
        fprintf(stderr, "ntbverbs: %s is in no 'host' line of the map %s\n", Text(peer).text,
                map_.c_str());
    else if (daemon != socket_)
        fprintf(stderr, "ntbverbs: the map %s has %s at %s, and the device is of %s\n",
                map_.c_str(), Text(peer).text, daemon, socket_.c_str());
    else
        return 0;
    return -EHOSTUNREACH;
}

bool Hosts::is_own(const Address &address)
{
    return !is_any(address) && Probe(address).bind(address);
}

Address Hosts::source_for(const Address &peer)
{
    Address source = {};
    if (!Probe(peer).connect(peer, source) && is_ipv4(peer))
        std::memcpy(source.bytes, mapped_prefix, sizeof(mapped_prefix));
    return source;
}

std::uint32_t Hosts::random()
{
    std::uint32_t number = 0;
    [[maybe_unused]] const ssize_t got = getrandom(&number, sizeof(number), 0);
    return number;
}

} // namespace ntb::verbs::cm
