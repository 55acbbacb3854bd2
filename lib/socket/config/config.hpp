// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_CONFIG_CONFIG_HPP
#define NTB_SOCKET_CONFIG_CONFIG_HPP

#include <cstddef>
#include <cstdint>

#include <sys/socket.h>

namespace ntb::socket
{

/// An address as IPv6 has it: IPv4 as ::ffff:a.b.c.d, so that both kinds compare alike.
struct Address {
    std::uint8_t bytes[16];
    std::uint16_t port; ///< in the host's order

    /// @return false: neither IPv4 nor IPv6
    static bool of(const sockaddr *from, socklen_t length, Address *out);
};

/// The first bits of an address.
struct Prefix {
    std::uint8_t bytes[16];
    unsigned length; ///< of 128 bits; 0: any address

    bool has(const Address &address) const;
};

/// How a program came by a connection. Inherit: it was open when the program was started. Late: so
/// was this one, and it goes over the bridge only after a child of the program has had it.
enum class Role { Connect, Accept, Inherit, Late };

/// Which connections of which programs go over the bridge, and whose daemon is asked. It lies in
/// one piece without a pointer, and nothing is allocated: it is read before a program's main().
class Config
{
public:
    static constexpr unsigned max_rules = 64, max_hosts = 64;
    static constexpr std::size_t max_name = 32, max_path = 108;
    static constexpr unsigned default_spin_us = 200, max_spin_us = 1000;

    /// What is wrong with a file.
    struct Error {
        unsigned line; ///< 0: the file itself
        char text[192];
    };

    /// @param text  contents of a configuration file; need not end in 0
    /// @retval false it is wrong, see error; *this is not to be used
    bool parse(const char *text, std::size_t size, Error *error);
    /// @param path  a file of at most 64 KiB
    bool load(const char *path, Error *error);

    /// Whether the first rule that fits a connection says that it may go over the bridge.
    /// @param program  name without folder
    /// @param address  where it connects to; or the own one of an accepted connection, also of one
    ///                 that was accepted by the program before this one
    bool wanted(Role role, const char *program, const Address &address) const;
    /// Whether some connection of the program's may go over the bridge.
    bool names(const char *program) const;
    /// The daemon's socket for a peer. @return NULL: the peer is not in the map
    const char *daemon_of(const Address &peer) const;
    /// That of the first line. @return NULL: no peer is in the map
    const char *first_daemon() const { return host_count_ == 0 ? nullptr : hosts_[0].socket; }
    unsigned spin_us() const { return spin_us_; } ///< longest time to spin, in microseconds

private:
    struct Rule {
        bool ntb, connect, accept, inherit, late;
        char program[max_name]; ///< a pattern of fnmatch()
        Prefix prefix;
        std::uint16_t first, last; ///< ports
    };
    struct Host {
        Prefix prefix;
        char socket[max_path];
    };
    struct Line;

    bool use(Line &line);
    bool host(Line &line);
    bool spin(Line &line);

    Rule rules_[max_rules] = {};
    Host hosts_[max_hosts] = {};
    unsigned rule_count_ = 0, host_count_ = 0;
    unsigned spin_us_ = default_spin_us;
};

} // namespace ntb::socket

#endif
