// SPDX-License-Identifier: BSD-3-Clause
// The configuration file of ntbd. Its lines are described in doc/node-daemon.md.
#ifndef NTBD_CONFIG_CONFIG_HPP
#define NTBD_CONFIG_CONFIG_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace ntbd
{

/// What a user may have at a time.
struct Quota {
    uint32_t clients = 256;
    uint32_t listeners = 256;
    uint32_t connections = 1024;
    uint64_t bytes = uint64_t{1} << 30; ///< memory of connections and segments
    uint32_t segments = 64;             ///< made, and opened

    friend bool operator==(const Quota &, const Quota &) = default;
};

/// How clients of two hosts are joined.
enum class CarrierChoice : uint32_t {
    automatic = 0, ///< direct where both daemons run on one machine
    direct = 1,    ///< or not at all
    daemon = 2,    ///< through the daemons
};

struct Config {
    // Fixed while the daemon runs.
    std::string socket;           ///< path of the clients' socket
    mode_t mode = 0666;           ///< of that socket
    std::string device;           ///< empty: none, clients of this host alone
    std::vector<std::string> eal; ///< arguments of EAL
    CarrierChoice carrier = CarrierChoice::automatic;
    std::optional<uid_t> user; ///< to become after set-up
    gid_t group = 0;           ///< its group
    // Taken over by a reload.
    uint32_t ring_bytes = 262144; ///< of each direction of a connection
    Quota quota;                  ///< of users without one of their own
    std::map<uid_t, Quota> quotas;
    std::optional<std::vector<uid_t>> allowed; ///< users that may attach; none: all

    const Quota &quota_of(uid_t uid) const;
    bool allows(uid_t uid) const;
};

/// @param error "FILE:LINE: what is wrong" if false is returned
bool read_config(const std::string &path, Config *out, std::string *error);
/// Of text that is no file. @param path for the error
bool parse_config(const std::string &text, const std::string &path, Config *out,
                  std::string *error);
/// What @p next changes that a reload cannot: the words of the lines; empty: nothing.
std::string fixed_changes(const Config &now, const Config &next);

} // namespace ntbd

#endif
