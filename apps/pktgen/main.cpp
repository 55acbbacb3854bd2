// SPDX-License-Identifier: BSD-3-Clause
// ntbmsg-pktgen: traffic between two hosts, measured. Either end drives, the other one serves.
#include <string>

#include "options/command_line.hpp"
#include "program.hpp"
#include "roles/roles.hpp"

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
    const std::string command = command_line(argc, argv); // EAL reorders it
    pktgen::Options options;
    const auto parse = [&](int count, char **words) {
        return pktgen::parse(count, words, options);
    };
    const auto run = [&] {
        return options.serve ? pktgen::serve(options) : pktgen::drive(options, command);
    };
    return app::run_program(
        argc, argv,
        {"ntbmsg-pktgen", parse, options.help, options.version, pktgen::help_text, run});
}
