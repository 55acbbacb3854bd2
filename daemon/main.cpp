// SPDX-License-Identifier: BSD-3-Clause
// ntbd, the node daemon: joins unprivileged clients of two hosts. doc/node-daemon.md.
#include "config/config.hpp"
#include "device/device.hpp"
#include "device/telemetry.hpp"
#include "device/tracer.hpp"
#include "server/listen.hpp"
#include "server/log.hpp"
#include "server/server.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <getopt.h>
#include <grp.h>
#include <optional>
#include <sys/resource.h>
#include <unistd.h>

namespace
{
constexpr const char *help =
    "ntbd: joins unprivileged clients of two hosts\n"
    "\n"
    "  ntbd --config FILE           runs until SIGTERM; SIGHUP reads FILE again\n"
    "  ntbd --config FILE --check   checks FILE and exits\n"
    "  ntbd --help | --version\n";

struct Arguments {
    std::string config;
    bool check = false;
    std::optional<int> status; ///< to end with at once
};

Arguments parse(int argc, char **argv)
{
    const option options[] = {{"config", required_argument, nullptr, 'f'},
                              {"check", no_argument, nullptr, 'c'},
                              {"help", no_argument, nullptr, 'h'},
                              {"version", no_argument, nullptr, 'v'},
                              {}};
    Arguments out;
    for (int found; (found = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
        if (found == 'h' || found == 'v') {
            fputs(found == 'h' ? help : "ntbd " NTBD_VERSION "\n", stdout);
            out.status = 0;
            return out;
        }
        if (found == 'f')
            out.config = optarg;
        else if (found == 'c')
            out.check = true;
        else
            out.status = 2; // getopt_long has said why
    }
    if (!out.status && (optind != argc || out.config.empty())) {
        ntbd::log("expected: ntbd --config FILE [--check]");
        out.status = 2;
    }
    return out;
}

// A client takes a descriptor; the soft limit is often 1024.
void raise_descriptor_limit()
{
    rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

// The server takes them from a descriptor, so no thread may be interrupted by them.
void block_signals()
{
    sigset_t signals;
    sigemptyset(&signals);
    for (const int one : {SIGTERM, SIGINT, SIGHUP})
        sigaddset(&signals, one);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    signal(SIGPIPE, SIG_IGN);
}

bool drop_privileges(const ntbd::Config &config)
{
    if (!config.user || *config.user == geteuid())
        return true;
    if (setgroups(0, nullptr) == 0 && setresgid(config.group, config.group, config.group) == 0 &&
        setresuid(*config.user, *config.user, *config.user) == 0)
        return true;
    ntbd::log("cannot become user %u: %s", *config.user, strerror(errno));
    return false;
}

void reload(const std::string &path, ntbd::Config *config)
{
    ntbd::Config next;
    std::string error;
    if (!ntbd::read_config(path, &next, &error)) {
        ntbd::log("%s; the configuration stays as it was", error.c_str());
        return;
    }
    if (const std::string fixed = fixed_changes(*config, next); !fixed.empty())
        ntbd::log("%s: changes of %s need a restart; the others are taken", path.c_str(),
                  fixed.c_str());
    config->ring_bytes = next.ring_bytes;
    config->quota = next.quota;
    config->quotas = next.quotas;
    config->allowed = next.allowed;
    ntbd::log("%s: read again", path.c_str());
}

int serve(const std::string &path, ntbd::Config *config)
{
    raise_descriptor_limit();
    block_signals();
    std::string error;
    ntbd::ListeningSocket listener;
    if (!listener.open(config->socket, config->mode, &error)) {
        ntbd::log("%s", error.c_str());
        return 1;
    }
    std::optional<ntbd::Eal> eal;
    if (!config->device.empty()) {
        eal.emplace(config->eal);
        if (!eal->running()) {
            ntbd::log("%s: the EAL does not start with the words of its 'eal' lines, and has said "
                      "why",
                      path.c_str());
            return 1;
        }
    }
    // The device is opened as root, and the server asks for its own user when it begins.
    ntbd::Mailbox mailbox;
    ntbd::Device device(config->device, config->socket, config->carrier, mailbox);
    if (eal && device.start() != 0) {
        ntbd::log("cannot open device %s", config->device.c_str());
        return 1;
    }
    if (!drop_privileges(*config))
        return 1;
    ntbd::Server server(listener.fd(), *config, mailbox, [&] { reload(path, config); });
    ntbd::Tracer tracer;
    if (eal) {
        ntbd::offer_telemetry(server, device);
        server.show_to(tracer);
    }
    ntbd::log("listening at %s", config->socket.c_str());
    const bool ended = server.run();
    if (!ended)
        ntbd::log("cannot run: %s", strerror(errno));
    device.stop();
    eal.reset();
    return ended ? 0 : 1;
}
} // namespace

int main(int argc, char **argv)
{
    const Arguments arguments = parse(argc, argv);
    if (arguments.status)
        return *arguments.status;
    ntbd::Config config;
    std::string error;
    if (!ntbd::read_config(arguments.config, &config, &error)) {
        ntbd::log("%s", error.c_str());
        return 1;
    }
    return arguments.check ? 0 : serve(arguments.config, &config);
}
