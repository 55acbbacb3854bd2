// SPDX-License-Identifier: BSD-3-Clause
#include "modes/modes.hpp"

#include "traffic/frame.hpp"

namespace echo
{

namespace
{

constexpr Mode table[] = {
    {"echo", "send back whatever comes", 0, 0, 0, make_echo},
    {"io", "bridge to an ethdev port, a frame a message", 0, 0, 0, make_io},
    {"rxonly", "receive and count", 0, 0, 0, make_rxonly},
    {"txonly", "send messages of one size, receive nothing", 64, 1, longest_message, make_txonly},
    {"flowgen", "send UDP frames of many flows, receive and count", 64, frame_bytes,
     most_frame_bytes, make_flowgen},
    {"file", "send files and folders, receive what the peer sends", 16384, 64, longest_message,
     make_file},
    {"ping", "measure round trips through a peer in mode echo", 64, 1, longest_message, make_ping},
};

} // namespace

std::span<const Mode> modes()
{
    return table;
}

const Mode *find_mode(const std::string &name)
{
    for (const Mode &mode : table) {
        if (name == mode.name)
            return &mode;
    }
    return nullptr;
}

std::string mode_names(char separator)
{
    std::string names;
    for (const Mode &mode : table) {
        if (!names.empty())
            names += separator;
        names += mode.name;
    }
    return names;
}

} // namespace echo
