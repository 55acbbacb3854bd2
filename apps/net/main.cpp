// SPDX-License-Identifier: BSD-3-Clause
// ntbmsg-net: an interface of the kernel whose other end is the peer's.
#include "bridge.hpp"
#include "program.hpp"

int main(int argc, char **argv)
{
    net::hold_signals();
    net::Options options;
    const auto parse = [&](int count, char **words) { return net::parse(count, words, options); };
    return app::run_program(argc, argv,
                            {"ntbmsg-net", parse, options.help, options.version, net::help_text,
                             [&] { return net::bridge(options); }});
}
