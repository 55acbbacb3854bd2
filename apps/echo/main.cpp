// SPDX-License-Identifier: BSD-3-Clause
// ntbmsg-echo: a file goes from one host to another and back, and is compared byte for byte; or a
// harness forwards messages in many ways.
#include "options/command_line.hpp"
#include "program.hpp"
#include "prompt/interact.hpp"
#include "round_trip/send.hpp"
#include "round_trip/serve.hpp"

int main(int argc, char **argv)
{
    echo::Options options;
    const auto parse = [&](int count, char **words) { return echo::parse(count, words, options); };
    const auto run = [&] {
        if (options.harness())
            return echo::interact(options);
        return options.serve ? echo::serve(options) : echo::send(options);
    };
    return app::run_program(
        argc, argv, {"ntbmsg-echo", parse, options.help, options.version, echo::help_text, run});
}
