// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include <rte_ether.h>

#include "bridge.hpp"
#include "frame.hpp"
#include "options.hpp"

namespace net
{

namespace
{

std::vector<app::Option> option_table(Options &o)
{
    return {
        {"interface", "NAME", &o.interface, "the interface that is made; default ntb0"},
        {"port", "NAME", &o.port, "the port; not needed where there is one"},
        {"mtu", "BYTES", app::Number{&o.mtu, RTE_ETHER_MIN_MTU, longest_mtu},
         "of the interface, 68 to 65521; default 1500"},
        {"queues", "N", app::Number{&o.queues, 1, 64},
         "queues of the interface, each on a queue pair; default 1"},
        {"idle-us", "US", app::Number{&o.idle_us, 0, 1'000'000},
         "polls so long after the last frame before it sleeps;\n"
         "default 10, for CPUs that others use, too"},
        {"no-offloads", nullptr, &o.no_offloads,
         "the kernel computes checksums and segments TCP, though\n"
         "the peer's could do without"},
        {"help", nullptr, &o.help, "print this text"},
        {"version", nullptr, &o.version, "print the version"},
    };
}

} // namespace

std::string parse(int argc, char **argv, Options &options)
{
    return app::parse_options(argc, argv, option_table(options));
}

std::string help_text()
{
    Options unused;
    return "ntbmsg-net: joins the kernels of two hosts, by an interface on either\n"
           "\n"
           "  ntbmsg-net [EAL options] -- [options]\n"
           "\n" +
           app::describe_options(option_table(unused)) +
           "\n"
           "The port is given to EAL (--vdev=net_plx_ntb0,...). The main lcore sleeps, the others\n"
           "forward; at least one is needed, and may share the CPU of the main lcore. The "
           "interface\n"
           "has carrier while the peer is connected, and ends with the program, at SIGINT or "
           "SIGTERM.\n"
           "tools/ntb-net calls it with all that is needed:\n"
           "\n"
           "  ntbmsg-net --lcores 0@0,1@0 --in-memory --no-pci --file-prefix ntb0 \\\n"
           "      --vdev=net_plx_ntb0,zero_copy=1,cable=/run/ntbmsg/cable -- --interface ntb0\n"
           "\n"
           "Exit status: 0 a signal ended it, 1 it could not begin, 2 the command line is wrong.\n";
}

} // namespace net
