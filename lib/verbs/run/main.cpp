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

#include "program.hpp"
#include "shim/genuine.hpp"

namespace
{
constexpr const char *help =
    "ntb-verbs: starts a program that finds a verbs device whose peers are reached over the "
    "bridge\n"
    "\n"
    "  ntb-verbs [-v] [--link NAME] [--socket PATH] PROGRAM [ARGUMENT...]\n"
    "\n"
    "  --link NAME     the device's name, and its daemon's: /run/ntbmsg/NAME.sock (default: ntb0)\n"
    "  --socket PATH   of the node daemon, if it is elsewhere\n"
    "  --library FILE  another libntbverbs.so than the installed one\n"
    "  -v, --verbose   say what is done\n"
    "  --help, --version\n"
    "\n"
    "The program is executed in place of ntb-verbs, with the device behind those of the machine. "
    "If it cannot be\n"
    "given one, a line on standard error says why, and it is not executed. Status 2: wrong use; "
    "1: no device;\n"
    "126, 127: the program cannot be executed, is not there.\n";

// What the shell says of a program that it cannot start.
constexpr int not_executable = 126, not_found = 127;
constexpr std::size_t longest_name = 32;

struct Options {
    bool verbose = false;
    std::string link = "ntb0";
    std::string socket;
    std::string library;
};

int fail(int status, const std::string &what)
{
    fprintf(stderr, "ntb-verbs: %s\n", what.c_str());
    return status;
}

// Where it is installed, relative to this program, so that all of it may be moved.
std::string installed_library()
{
    char own[4096];
    const ssize_t size = readlink("/proc/self/exe", own, sizeof(own));
    if (size <= 0 || size == sizeof(own))
        return NTB_VERBS_LIBRARY;
    const std::string path(own, static_cast<std::size_t>(size));
    return NTB_VERBS_LIBRARY[0] == '/' ? NTB_VERBS_LIBRARY
                                       : path.substr(0, path.rfind('/') + 1) + NTB_VERBS_LIBRARY;
}

// The dynamic linker splits its list at these.
bool can_be_preloaded(const std::string &library)
{
    return library.find_first_of(" :") == std::string::npos && access(library.c_str(), R_OK) == 0;
}

// @return why the program would find no device; empty: it will
std::string refusal(const Options &options, const ntb::Program &program)
{
    if (!program.refuses.empty())
        return program.path + " " + program.refuses + ": nothing can be loaded into it";
    if (!can_be_preloaded(options.library))
        return options.library + " cannot be loaded";
    void *library = nullptr;
    const std::string wrong = ntb::verbs::shim::check_libibverbs(library);
    if (!wrong.empty())
        return wrong;
    ntbclient *client = nullptr;
    const int error = ntbclient_attach(options.socket.c_str(), &client);
    if (error != 0)
        return "no node daemon at " + options.socket + ": " + strerror(-error);
    ntbclient_detach(client);
    return {};
}

void set_environment(const Options &options)
{
    const char *before = getenv("LD_PRELOAD");
    const std::string list =
        before == nullptr || *before == 0 ? options.library : before + (":" + options.library);
    setenv("LD_PRELOAD", list.c_str(), 1);
    char *absolute = realpath(options.socket.c_str(), nullptr);
    setenv("NTB_VERBS_SOCKET", absolute != nullptr ? absolute : options.socket.c_str(), 1);
    free(absolute);
    setenv("NTB_VERBS_DEVICE", options.link.c_str(), 1);
}

int start(Options options, char **words)
{
    if (options.link.empty() || options.link.size() > longest_name ||
        options.link.find('/') != std::string::npos)
        return fail(2, "--link: expected a name of 1 to 32 bytes without '/'");
    if (options.socket.empty())
        options.socket = "/run/ntbmsg/" + options.link + ".sock";
    const ntb::Program program = ntb::find_program(words[0]);
    if (program.error != 0)
        return fail(program.error == ENOENT ? not_found : not_executable,
                    std::string(words[0]) + ": " + strerror(program.error));
    const std::string why_not = refusal(options, program);
    if (!why_not.empty())
        return fail(1, why_not);
    set_environment(options);
    if (options.verbose)
        fprintf(stderr, "ntb-verbs: %s with device %s of %s and %s\n", program.path.c_str(),
                options.link.c_str(), options.socket.c_str(), options.library.c_str());
    // What the kernel does not know is a script to execvp(), whatever it is.
    execv(program.path.c_str(), words);
    if (errno == ENOEXEC && !program.elf)
        execvp(words[0], words);
    const int error = errno;
    return fail(error == ENOENT ? not_found : not_executable,
                std::string(words[0]) + ": " + strerror(error));
}
} // namespace

int main(int argc, char **argv)
{
    const option names[] = {{"verbose", no_argument, nullptr, 'v'},
                            {"link", required_argument, nullptr, 'n'},
                            {"socket", required_argument, nullptr, 's'},
                            {"library", required_argument, nullptr, 'l'},
                            {"help", no_argument, nullptr, 'h'},
                            {"version", no_argument, nullptr, 'V'},
                            {}};
    Options options;
    options.library = installed_library();
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
        case 'l':
            options.library = optarg;
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
        return fail(2, "expected: ntb-verbs [-v] [--link NAME] [--socket PATH] PROGRAM "
                       "[ARGUMENT...]");
    return start(options, argv + optind);
}
