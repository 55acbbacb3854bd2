// SPDX-License-Identifier: BSD-3-Clause
// ntbmsg-pktgen: traffic between two hosts, measured. Either end drives, the other one serves.
#include <csignal>
#include <cstdio>
#include <string>

#include "eal.hpp"
#include "options/command_line.hpp"
#include "roles/roles.hpp"
#include "signals.hpp"

namespace
{

std::string command_line(int argc, char **argv)
{
    std::string text = argv[0];
    for (int i = 1; i < argc; ++i) {
        text += ' ';
        text += argv[i];
    }
    return text;
}

} // namespace

int main(int argc, char **argv)
{
    constexpr int wrong_usage = 2;
    const std::string command = command_line(argc, argv); // EAL reorders it
    const app::OwnArguments own = app::own_arguments(argc, argv);
    pktgen::Options options;
    const std::string error = own.given ? pktgen::parse(own.argc, own.argv, options)
                                        : std::string("there is no \"--\" with options behind it");
    if (!error.empty()) {
        std::fprintf(stderr, "ntbmsg-pktgen: %s (ntbmsg-pktgen -- --help explains)\n",
                     error.c_str());
        return wrong_usage;
    }
    if (options.help) {
        std::fputs(pktgen::help_text().c_str(), stdout);
        return 0;
    }
    const app::Eal eal(argc, argv);
    if (!eal.running()) {
        std::fprintf(stderr, "ntbmsg-pktgen: EAL did not start\n");
        return 1;
    }
    app::catch_signals();
    // A result file beyond the limit is an error of the write, like a full disk.
    std::signal(SIGXFSZ, SIG_IGN);
    return options.serve ? pktgen::serve(options) : pktgen::drive(options, command);
}
