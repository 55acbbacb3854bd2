// SPDX-License-Identifier: BSD-3-Clause
// ntb-verbs: starts a program that finds a verbs device whose peers are reached over the bridge.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <getopt.h>
#include <ntbclient.h>
#include <unistd.h>

#include "config/config.hpp"
#include "memory/exchange.hpp"
#include "program.hpp"
#include "shim/daemon_error.hpp"
#include "shim/genuine.hpp"

namespace
{
constexpr const char *help =
    "ntb-verbs: starts a program that finds a verbs device whose peers are reached over the "
    "bridge\n"
    "\n"
    "  ntb-verbs [-v] [--link NAME] [--socket PATH] [--hosts FILE] "
    "[--direct | --direct-sends]\n"
    "            PROGRAM [ARGUMENT...]\n"
    "\n"
    "  --link NAME     the device's name, and its daemon's: /run/ntbmsg/NAME.sock (default: ntb0)\n"
    "  --socket PATH   of the node daemon, if it is elsewhere\n"
    "  --hosts FILE    whose 'host' lines say which addresses librdmacm reaches over the bridge\n"
    "                  (default: " NTB_VERBS_HOSTS ", if it is there)\n"
    "  --direct        let peers map the pages of registered memory, where they are direct as "
    "well: a peer can read and\n"
    "                  write all of them until they are deregistered. The manual has what else "
    "differs\n"
    "  --direct-sends  the same, and let a peer copy the data of long SENDs from where they lie: "
    "it "
    "can read all of a\n"
    "                  region from which something was sent to it, also one without rights for "
    "peers\n"
    "  --library FILE  another libntbverbs.so than the installed one\n"
    "  -v, --verbose   say what is done, and at the end what became of direct memory\n"
    "  --help, --version\n"
    "\n"
    "The program is executed in place of ntb-verbs, with the device behind those of the machine. "
    "If it cannot be\n"
    "given one, a line on standard error says why, and it is not executed. Status 2: wrong use; "
    "1: no device;\n"
    "126, 127: the program cannot be executed, is not there.\n";

constexpr std::size_t longest_name = 32;

struct Options {
    bool verbose = false;
    bool direct = false;
    bool direct_sends = false;
    std::string link = "ntb0";
    std::string socket;
    std::string hosts; // empty: none
    std::string library;
};

int fail(int status, const std::string &what)
{
    fprintf(stderr, "ntb-verbs: %s\n", what.c_str());
    return status;
}

std::string map_error(const std::string &path)
{
    ntb::socket::Config config;
    ntb::socket::Config::Error error;
    if (config.load(path.c_str(), &error))
        return {};
    char line[16] = "";
    if (error.line != 0)
        snprintf(line, sizeof(line), ":%u", error.line);
    return path + line + ": " + error.text;
}

// @return why the program would find no device; empty: it will
std::string refusal(const Options &options, const ntb::Program &program)
{
    if (!program.refuses.empty())
        return program.path + " " + program.refuses + ": nothing can be loaded into it";
    if (!ntb::can_be_preloaded(options.library))
        return options.library +
               " cannot be loaded: --library names another one, as that of a build";
    const std::string unread = options.hosts.empty() ? "" : map_error(options.hosts);
    if (!unread.empty())
        return unread;
    if ((options.direct || options.direct_sends) && !ntb::verbs::can_exchange())
        return std::string(options.direct_sends ? "--direct-sends" : "--direct") +
               ": the kernel has no userfaultfd with minor faults for this user (Linux "
               "5.14)";
    void *library = nullptr;
    const std::string wrong = ntb::verbs::shim::check_libibverbs(library);
    if (!wrong.empty())
        return wrong;
    ntbclient *client = nullptr;
    const int error = ntbclient_attach(options.socket.c_str(), &client);
    if (error != 0)
        return ntb::verbs::shim::daemon_error(options.socket, -error);
    ntbclient_detach(client);
    return {};
}

void set_environment(const Options &options)
{
    ntb::preload(options.library);
    ntb::set_path_variable("NTB_VERBS_SOCKET", options.socket);
    if (options.hosts.empty())
        unsetenv("NTB_VERBS_HOSTS");
    else
        ntb::set_path_variable("NTB_VERBS_HOSTS", options.hosts);
    setenv("NTB_VERBS_DEVICE", options.link.c_str(), 1);
    const auto set_switch = [](const char *name, bool on) {
        if (on)
            setenv(name, "1", 1);
        else
            unsetenv(name);
    };
    set_switch("NTB_VERBS_DIRECT", options.direct);
    set_switch("NTB_VERBS_DIRECT_SENDS", options.direct_sends);
    set_switch("NTB_VERBS_VERBOSE", options.verbose);
}

int start(Options options, char **words)
{
    if (options.link.empty() || options.link.size() > longest_name ||
        options.link.find('/') != std::string::npos)
        return fail(2, "--link: expected a name of 1 to 32 bytes without '/'");
    if (options.hosts.empty() && access(NTB_VERBS_HOSTS, F_OK) == 0)
        options.hosts = NTB_VERBS_HOSTS;
    if (options.socket.empty())
        options.socket = "/run/ntbmsg/" + options.link + ".sock";
    const ntb::Program program = ntb::find_program(words[0]);
    if (program.error != 0)
        return fail(ntb::status_of(program.error),
                    std::string(words[0]) + ": " + strerror(program.error));
    const std::string why_not = refusal(options, program);
    if (!why_not.empty())
        return fail(1, why_not);
    set_environment(options);
    if (options.verbose)
        fprintf(stderr, "ntb-verbs: %s with device %s of %s, %s and %s\n", program.path.c_str(),
                options.link.c_str(), options.socket.c_str(),
                options.hosts.empty() ? "no map of hosts" : options.hosts.c_str(),
                options.library.c_str());
    const int error = ntb::execute(program, words);
    return fail(ntb::status_of(error), std::string(words[0]) + ": " + strerror(error));
}
} // namespace

int main(int argc, char **argv)
{
    const option names[] = {
        {"verbose", no_argument, nullptr, 'v'},       {"link", required_argument, nullptr, 'n'},
        {"socket", required_argument, nullptr, 's'},  {"hosts", required_argument, nullptr, 'H'},
        {"library", required_argument, nullptr, 'l'}, {"direct", no_argument, nullptr, 'd'},
        {"direct-sends", no_argument, nullptr, 'D'},  {"help", no_argument, nullptr, 'h'},
        {"version", no_argument, nullptr, 'V'},       {}};
    Options options;
    options.library = ntb::beside_this_program(NTB_VERBS_LIBRARY);
    // The first word that is no option is the program: what follows is its own.
    for (int found; (found = getopt_long(argc, argv, "+v", names, nullptr)) != -1;) {
        switch (found) {
        case 'v':
            options.verbose = true;
            break;
        case 'n':
            options.link = optarg;
            break;
        case 's':
            options.socket = optarg;
            break;
        case 'H':
            options.hosts = optarg;
            break;
        case 'l':
            options.library = optarg;
            break;
        case 'd':
            options.direct = true;
            break;
        case 'D':
            options.direct_sends = true;
            break;
        case 'h':
        case 'V':
            fputs(found == 'h' ? help : "ntb-verbs " NTB_VERBS_VERSION "\n", stdout);
            return 0;
        default:
            return 2;
        }
    }
    if (optind == argc)
        return fail(2, "expected: ntb-verbs [-v] [--link NAME] [--socket PATH] [--hosts FILE] "
                       "[--direct | --direct-sends] PROGRAM [ARGUMENT...]");
    return start(options, argv + optind);
}
