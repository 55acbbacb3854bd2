// SPDX-License-Identifier: BSD-3-Clause
// ntbmsg-echo: a file goes from one host to another and back, and is compared byte for byte; or a
// harness forwards messages in many ways.
#include <cstdio>

#include "eal.hpp"
#include "options/command_line.hpp"
#include "roles.hpp"
#include "signals.hpp"

int main(int argc, char **argv)
{
    constexpr int wrong_usage = 2;
    const app::OwnArguments own = app::own_arguments(argc, argv);
    echo::Options options;
    const std::string error = own.given ? echo::parse(own.argc, own.argv, options)
                                        : std::string("there is no \"--\" with options behind it");
    if (!error.empty()) {
        std::fprintf(stderr, "ntbmsg-echo: %s (ntbmsg-echo -- --help explains)\n", error.c_str());
        return wrong_usage;
    }
    if (options.help) {
        std::fputs(echo::help_text().c_str(), stdout);
        return 0;
    }
    const app::Eal eal(argc, argv);
    if (!eal.running()) {
        std::fprintf(stderr, "ntbmsg-echo: EAL did not start\n");
        return 1;
    }
    app::catch_signals();
    if (options.harness())
        return echo::interact(options);
    return options.serve ? echo::serve(options) : echo::send(options);
}
