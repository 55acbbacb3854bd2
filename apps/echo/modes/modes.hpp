// SPDX-License-Identifier: BSD-3-Clause
// The forwarding modes by name, and their settings.
#ifndef ECHO_MODES_MODES_HPP
#define ECHO_MODES_MODES_HPP

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "traffic/forwarder.hpp"

namespace echo
{

class FileWork;
class Ports;

/// What all queues go by. Taken over at start.
struct Settings {
    uint64_t burst = 32;       ///< messages a round, 1 to longest_burst
    uint64_t size = 0;         ///< bytes of a message that is made here; 0: the mode's default
    uint64_t in_flight = 1;    ///< ping: messages, per queue
    uint64_t flows = 256;      ///< flowgen: flows it takes turns with
    uint64_t count = 0;        ///< messages to make per queue; 0: no end
    bool in_place = false;     ///< echo: answers are built in receive buffers of the peer
    FileWork *files = nullptr; ///< file: outlives the queues
    Ports *ports = nullptr;    ///< io: started, and outlives the queues
};

inline constexpr uint64_t longest_message = (1U << 24) - 1; ///< bytes: 24 bits on the wire
inline constexpr uint64_t most_in_flight = 65536;
inline constexpr uint64_t most_flows = 65536;

struct Mode {
    const char *name;
    const char *help;
    uint64_t default_size; ///< bytes of a message; 0: it makes none
    uint64_t least_size, most_size;
    std::unique_ptr<Forwarder> (*make)(const Way &, const Settings &);
};

std::span<const Mode> modes();

/// @return NULL: there is none of that name
const Mode *find_mode(const std::string &name);

/// "a|b|c"
std::string mode_names(char separator);

// One maker a mode, each in the mode's own file.
std::unique_ptr<Forwarder> make_echo(const Way &way, const Settings &settings);
std::unique_ptr<Forwarder> make_rxonly(const Way &way, const Settings &settings);
std::unique_ptr<Forwarder> make_txonly(const Way &way, const Settings &settings);
std::unique_ptr<Forwarder> make_flowgen(const Way &way, const Settings &settings);
std::unique_ptr<Forwarder> make_file(const Way &way, const Settings &settings);
std::unique_ptr<Forwarder> make_io(const Way &way, const Settings &settings);
std::unique_ptr<Forwarder> make_ping(const Way &way, const Settings &settings);

} // namespace echo

#endif
