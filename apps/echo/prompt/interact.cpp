// SPDX-License-Identifier: BSD-3-Clause
#include "prompt/interact.hpp"

#include <cstdio>
#include <functional>
#include <unistd.h>

#include <rte_pmd_plx_ntb.h>

#include "harness/harness.hpp"
#include "harness/show.hpp"
#include "peer.hpp"
#include "prompt/commands.hpp"
#include "prompt/prompt.hpp"
#include "signals.hpp"

namespace echo
{

namespace
{

/// Without commands: forwards until a signal comes.
void run_alone(const Console &console)
{
    while (app::stop_signal() == 0 && !console.quit) {
        console.tick();
        usleep(20'000);
    }
}

/// @return empty, or the first error of what runs without a person
std::string run_commands(const Options &o, Harness &harness)
{
    bool quit = false;
    Grammar grammar(commands(harness, quit));
    const std::function<void()> tick = [&] { harness.tick(); };
    const Console console{grammar, quit, tick};
    if (!o.cmdline_file.empty()) {
        std::string error = run_file(console, o.cmdline_file);
        if (!error.empty() || quit)
            return error;
    }
    if (o.interactive && isatty(STDIN_FILENO) != 0)
        run_terminal(console);
    else if (o.interactive)
        return run_lines(console, STDIN_FILENO, "standard input");
    else if (o.cmdline_file.empty())
        run_alone(console);
    return {};
}

int complain(const std::string &error)
{
    std::fflush(stdout);
    std::fprintf(stderr, "ntbmsg-echo: %s\n", error.c_str());
    return 1;
}

} // namespace

int interact(const Options &o)
{
    const app::Endpoint endpoint(o.device, endpoint_options(o));
    if (!endpoint.ok())
        return 1;
    const int device = rte_pmd_plx_ntb_find(o.device.c_str());
    Harness harness(endpoint.get(), static_cast<uint16_t>(device), o,
                    [&harness] { show_stats(harness); });
    if (!o.dir.empty()) {
        if (const std::string error = harness.set_folder(o.dir); !error.empty())
            return complain(error);
    }
    // Without a prompt there is no command "start".
    const bool alone = !o.interactive && o.cmdline_file.empty();
    if (o.auto_start || o.tx_first || alone) {
        if (const std::string error = harness.start(o.tx_first); !error.empty())
            return complain(error);
    }
    const std::string error = run_commands(o, harness);
    harness.tick();
    harness.stop();
    if (alone)
        show_stats(harness);
    return error.empty() ? 0 : complain(error);
}

} // namespace echo
