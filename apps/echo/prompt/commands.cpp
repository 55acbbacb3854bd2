// SPDX-License-Identifier: BSD-3-Clause
#include "prompt/commands.hpp"

#include <cstdio>

#include "harness/harness.hpp"
#include "harness/show.hpp"
#include "options.hpp"
#include "prompt/faults.hpp"

namespace echo
{

namespace
{

constexpr double default_patience = 10;

std::string number_of(const std::string &word, uint64_t &value)
{
    return app::parse_number(word.c_str(), value)
               ? std::string()
               : word + ": must be a number, K, M or G may follow it";
}

std::string seconds_of(const std::string &word, double &value)
{
    return app::parse_seconds(word.c_str(), value) ? std::string()
                                                   : word + ": must be a time in seconds above 0";
}

using Show = void (*)(Harness &);

Show find_show(const std::string &what)
{
    const struct {
        const char *name;
        Show show;
    } table[] = {
        {"config", show_config}, {"stats", show_stats},       {"xstats", show_xstats},
        {"link", show_link},     {"channels", show_channels}, {"regs", show_regs},
        {"copy", show_copy},
    };
    for (const auto &row : table) {
        if (what == row.name)
            return row.show;
    }
    return nullptr;
}

void add_control(std::vector<Command> &list, Harness &h)
{
    list.push_back({"start", "start forwarding: each queue in its mode, on its lcore",
                    [&h](const Words &) { return h.start(false); }});
    list.push_back({"start tx_first", "the same; queues that only send back send a burst first",
                    [&h](const Words &) { return h.start(true); }});
    list.push_back({"stop", "stop forwarding; what was counted stays",
                    [&h](const Words &) { return h.stop(); }});
    list.push_back({"clear stats", "set all counters to 0, the device's as well",
                    [&h](const Words &) { return h.clear_stats(); }});
    list.push_back({"link up|down",
                    "start the device, or stop it: the peer sees us connect or leave",
                    [&h](const Words &w) { return h.set_link(w[1] == "up"); }});
}

void add_show(std::vector<Command> &list, Harness &h)
{
    list.push_back({"show config|stats|xstats|link|channels|regs|copy",
                    "what is set, was counted, or is", [&h](const Words &w) {
                        find_show(w[1])(h);
                        return std::string();
                    }});
}

void add_set(std::vector<Command> &list, Harness &h)
{
    list.push_back({"set fwd " + mode_names('|'), "what all queues and channels do",
                    [&h](const Words &w) { return h.set_mode(w[2], std::nullopt); }});
    list.push_back({"set fwd " + mode_names('|') + " QUEUE",
                    "what one does; channels are counted on from the queues", [&h](const Words &w) {
                        uint64_t queue = 0;
                        const std::string error = number_of(w[3], queue);
                        return error.empty() ? h.set_mode(w[2], queue) : error;
                    }});
    list.push_back({"set burst|size|in-flight|flows|count NUMBER",
                    "messages a round, bytes of one, messages in flight, flows, messages in all",
                    [&h](const Words &w) {
                        uint64_t value = 0;
                        const std::string error = number_of(w[2], value);
                        return error.empty() ? h.set_number(w[1], value) : error;
                    }});
    list.push_back({"set build mbuf|in-place", "where mode echo builds what it sends",
                    [&h](const Words &w) { return h.set_build(w[2]); }});
}

void add_copy(std::vector<Command> &list, Harness &h)
{
    list.push_back({"set copy auto|cpu|dma", "how long messages are copied; connects anew",
                    [&h](const Words &w) { return h.set_copy(w[2]); }});
}

void add_files(std::vector<Command> &list, Harness &h)
{
    list.push_back({"set dir FOLDER...", "where mode file puts what the peer sends",
                    [&h](const Words &w) { return h.set_folder(w[2]); }});
    list.push_back({"send PATH...", "have mode file send a file, or a folder and what is in it",
                    [&h](const Words &w) { return h.send(w[1]); }});
}

void add_faults(std::vector<Command> &list, Harness &h)
{
    list.push_back({"inject " + fault_names('|'), "cause a fault of the twin, with argument 1",
                    [&h](const Words &w) { return inject(h.device(), w[1], 1); }});
    list.push_back({"inject " + fault_names('|') + " ARGUMENT",
                    "the same with another argument; 0 takes most faults back",
                    [&h](const Words &w) {
                        uint64_t value = 0;
                        const std::string error = number_of(w[2], value);
                        return error.empty() ? inject(h.device(), w[1], value) : error;
                    }});
}

/// What command files need.
void add_waits(std::vector<Command> &list, Harness &h)
{
    list.push_back({"wait connected|done", "until there is a peer, or all is sent; 10 s at most",
                    [&h](const Words &w) {
                        return w[1] == "done" ? h.wait_done(default_patience)
                                              : h.wait_connected(default_patience);
                    }});
    list.push_back(
        {"wait connected|done SECONDS", "the same, with another limit", [&h](const Words &w) {
             double seconds = 0;
             const std::string error = seconds_of(w[2], seconds);
             if (!error.empty())
                 return error;
             return w[1] == "done" ? h.wait_done(seconds) : h.wait_connected(seconds);
         }});
    list.push_back({"print TEXT...", "a line of text among what is shown", [](const Words &w) {
                        std::printf("%s\n", w[1].c_str());
                        return std::string();
                    }});
    list.push_back({"sleep SECONDS", "go on later", [&h](const Words &w) {
                        double seconds = 0;
                        const std::string error = seconds_of(w[1], seconds);
                        return error.empty() ? h.pause(seconds) : error;
                    }});
}

} // namespace

std::vector<Command> commands(Harness &harness, bool &quit)
{
    std::vector<Command> list;
    add_control(list, harness);
    add_set(list, harness);
    add_show(list, harness);
    add_copy(list, harness);
    add_files(list, harness);
    add_faults(list, harness);
    add_waits(list, harness);
    list.push_back({"quit", "stop and end", [&quit](const Words &) {
                        quit = true;
                        return std::string();
                    }});
    return list;
}

} // namespace echo
