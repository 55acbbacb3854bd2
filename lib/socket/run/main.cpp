// SPDX-License-Identifier: BSD-3-Clause
// ntb-run: starts a program whose TCP connections may go over the bridge.
#include "config/config.hpp"
#include "program.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>
#include <string>
#include <unistd.h>

using namespace ntb::socket;

namespace
{
constexpr const char *help =
    "ntb-run: starts a program whose TCP connections may go over the bridge\n"
    "\n"
    "  ntb-run [-v] [--config FILE] PROGRAM [ARGUMENT...]\n"
    "\n"
    "  -v, --verbose      say what is done, and at the end of the program what its connections "
    "did\n"
    "  --config FILE      which connections, and whose daemon is asked (default: " NTB_RUN_CONFIG
    ")\n"
    "  --library FILE     another libntbsocket.so than the installed one\n"
    "  --help, --version\n"
    "\n"
    "The program is executed in place of ntb-run. Where its connections cannot go over the bridge "
    "they are TCP:\n"
    "without a daemon, with a peer that is not in the configuration, and always in programs that "
    "are static or\n"
    "setuid, which ntb-run says in a line on standard error. Status 2: wrong use or "
    "configuration;\n"
    "126, 127: the program cannot be executed, is not there.\n";

struct Options {
    bool verbose = false;
    const char *config = nullptr;
    std::string library;
};

int wrong(const std::string &what)
{
    fprintf(stderr, "ntb-run: %s\n", what.c_str());
    return 2;
}

// Of a wrong configuration nothing is run: the user has just named it. Where none was named and
// there is none, it is TCP.
int check_config(Options &options)
{
    const bool named = options.config != nullptr;
    if (!named)
        options.config = NTB_RUN_CONFIG;
    Config config;
    Config::Error error;
    if (!config.load(options.config, &error)) {
        if (!named && access(options.config, F_OK) != 0) {
            fprintf(stderr, "ntb-run: there is no %s: TCP alone\n", options.config);
            options.config = nullptr;
            return 0;
        }
        const std::string line = error.line == 0 ? "" : std::to_string(error.line) + ":";
        return wrong(std::string(options.config) + ":" + line + " " + error.text);
    }
    return 0;
}

int start(Options options, char **words)
{
    if (const int status = check_config(options); status != 0)
        return status;
    const ntb::Program program = ntb::find_program(words[0]);
    if (program.error != 0) {
        fprintf(stderr, "ntb-run: %s: %s\n", words[0], strerror(program.error));
        return ntb::status_of(program.error);
    }
    if (options.config != nullptr && !program.refuses.empty()) {
        fprintf(stderr, "ntb-run: %s %s: TCP alone\n", program.path.c_str(),
                program.refuses.c_str());
    } else if (options.config != nullptr && !ntb::can_be_preloaded(options.library)) {
        fprintf(stderr, "ntb-run: %s cannot be loaded: TCP alone\n", options.library.c_str());
    } else if (options.config != nullptr) {
        ntb::preload(options.library);
        ntb::set_path_variable("NTB_SOCKET_CONFIG", options.config);
        setenv("NTB_SOCKET_VERBOSE", options.verbose ? "1" : "0", 1);
        if (options.verbose)
            fprintf(stderr, "ntb-run: %s with %s and %s\n", program.path.c_str(), options.config,
                    options.library.c_str());
    }
    const int error = ntb::execute(program, words);
    fprintf(stderr, "ntb-run: %s: %s\n", words[0], strerror(error));
    return ntb::status_of(error);
}
} // namespace

int main(int argc, char **argv)
{
    const option names[] = {
        {"verbose", no_argument, nullptr, 'v'},       {"config", required_argument, nullptr, 'c'},
        {"library", required_argument, nullptr, 'l'}, {"help", no_argument, nullptr, 'h'},
        {"version", no_argument, nullptr, 'V'},       {}};
    Options options;
    options.library = ntb::beside_this_program(NTB_RUN_LIBRARY);
    // The first word that is no option is the program: what follows is its own.
    for (int found; (found = getopt_long(argc, argv, "+v", names, nullptr)) != -1;) {
        switch (found) {
        case 'v':
            options.verbose = true;
            break;
        case 'c':
            options.config = optarg;
            break;
        case 'l':
            options.library = optarg;
            break;
        case 'h':
        case 'V':
            fputs(found == 'h' ? help : "ntb-run " NTB_RUN_VERSION "\n", stdout);
            return 0;
        default:
            return 2;
        }
    }
    if (optind == argc)
        return wrong("expected: ntb-run [-v] [--config FILE] PROGRAM [ARGUMENT...]");
    return start(options, argv + optind);
}
