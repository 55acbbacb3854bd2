// SPDX-License-Identifier: BSD-3-Clause
// How two daemons introduce themselves over a channel of the bridge: who they are, and, if they
// share a machine, how they meet there.
#ifndef NTBD_SERVER_INTRODUCTION_HPP
#define NTBD_SERVER_INTRODUCTION_HPP

#include "broker/relay_order.hpp"
#include "config/config.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace ntbd
{

using MachineId = std::array<uint8_t, 16>;

inline constexpr uint32_t introduction_magic = 0x4F52544E;
inline constexpr uint32_t introduction_version = 3;
inline constexpr size_t introduction_path_bytes = 112;

/// The message on the channel. What the peer sent is checked by introduction_of() before it is
/// used.
struct Introduction {
    uint32_t magic = introduction_magic;
    uint32_t version = introduction_version;
    MachineId machine = {}; ///< of this boot
    Token token = {};       ///< a secret of this connection: who knows it has read the channel
    char path[introduction_path_bytes] = {}; ///< of the daemon's socket, with a 0 behind it
    uint32_t carrier = 0;                    ///< a CarrierChoice
    uint32_t host = 0;                       ///< host_number() of the path
};
static_assert(sizeof(Introduction) == 160);

/// The peer's daemon, as it introduced itself.
struct Peer {
    MachineId machine;
    Token token;
    std::string path;
    CarrierChoice carrier;
    uint16_t host; ///< its number
};

/// @return false: it is no introduction of this version
bool introduction_of(const void *message, size_t bytes, Peer *out);
/// A number of this host on the bridge, 1 to NTBCLIENT_MAX_HOST: of this boot and the path of the
/// daemon's socket, so it is the same after the daemon's restart.
uint16_t host_number(const std::string &path);
/// With a new token. @return false: this system has no boot id or no random numbers
bool introduce_self(const std::string &path, CarrierChoice carrier, Introduction *out);
/// How two hosts are joined: the same at both. Nothing: their configurations exclude it.
std::optional<Carriage> agree(const Introduction &own, const Peer &peer);
/// In a time that does not depend on where they differ.
bool is_same_token(const uint8_t *one, const Token &other);

} // namespace ntbd

#endif
