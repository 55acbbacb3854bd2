// SPDX-License-Identifier: BSD-3-Clause
// The state machine of a connection as a table. doc/link-life.md has the same table and explains
// each name; a test compares the two. A pair of state and event that is not listed changes nothing.
#ifndef PLX_NTB_LINK_TABLE_HPP
#define PLX_NTB_LINK_TABLE_HPP

#include <cstddef>
#include <cstdint>
#include <optional>

namespace plx::pmd
{

enum class LinkState : uint8_t {
    stopped,
    waiting,
    refused,
    connected,
    silent,
    closing,
    losing,
    fencing,
    stopping,
};

/// Events, found by a control tick or caused by the application.
enum class LinkInput : uint8_t {
    start,
    stop,
    unreachable,
    protocol_error,
    hello_torn,
    hello_impossible,
    hello_refusing,
    hello_closing,
    hello_new,
    hello_unanswered,
    hello_answered,
    unopened,
    heartbeat,
    heartbeat_missing,
    heartbeat_ended,
    all_received,
    receive_overdue,
    quiet,
    overdue,
    fenced,
};

enum class LinkAction : uint8_t {
    none,
    begin,
    set_reason,
    greet,
    refuse,
    adopt,
    connect,
    close_sending,
    lose,
    renew,
    send_closing,
};

/// What is reported to the application.
enum class LinkEvent : uint8_t { connected, silent, alive, lost, refused, closing };

inline constexpr const char *link_state_names[] = {"stopped",   "waiting", "refused",
                                                   "connected", "silent",  "closing",
                                                   "losing",    "fencing", "stopping"};
inline constexpr const char *link_input_names[] = {"start",           "stop",
                                                   "unreachable",     "protocol_error",
                                                   "hello_torn",      "hello_impossible",
                                                   "hello_refusing",  "hello_closing",
                                                   "hello_new",       "hello_unanswered",
                                                   "hello_answered",  "unopened",
                                                   "heartbeat",       "heartbeat_missing",
                                                   "heartbeat_ended", "all_received",
                                                   "receive_overdue", "quiet",
                                                   "overdue",         "fenced"};
inline constexpr const char *link_action_names[] = {
    "none",    "begin",         "set_reason", "greet", "refuse",      "adopt",
    "connect", "close_sending", "lose",       "renew", "send_closing"};
inline constexpr const char *link_event_names[] = {"connected", "silent",  "alive",
                                                   "lost",      "refused", "closing"};

struct LinkStep {
    LinkState state;
    LinkInput input;
    LinkAction action;
    LinkState next;
    std::optional<LinkEvent> report = {}; ///< once the action is done
    std::optional<LinkState> otherwise =
        {}; ///< next state if the action fails; nothing is reported then
};

namespace link_table
{
using S = LinkState;
using I = LinkInput;
using A = LinkAction;
using E = LinkEvent;

inline constexpr LinkStep steps[] = {
    {S::stopped, I::start, A::begin, S::waiting, {}, S::stopped},

    {S::waiting, I::stop, A::send_closing, S::stopping},
    {S::waiting, I::unreachable, A::set_reason, S::waiting},
    {S::waiting, I::hello_torn, A::greet, S::waiting},
    {S::waiting, I::hello_impossible, A::refuse, S::refused, E::refused},
    {S::waiting, I::hello_refusing, A::greet, S::refused, E::refused},
    {S::waiting, I::hello_closing, A::greet, S::waiting},
    {S::waiting, I::hello_new, A::adopt, S::waiting, {}, S::fencing},
    {S::waiting, I::hello_unanswered, A::greet, S::waiting},
    {S::waiting, I::hello_answered, A::connect, S::connected, E::connected, S::waiting},
    {S::waiting, I::unopened, A::greet, S::refused, E::refused},

    {S::refused, I::stop, A::send_closing, S::stopping},
    {S::refused, I::unreachable, A::set_reason, S::refused},
    {S::refused, I::hello_torn, A::greet, S::refused},
    {S::refused, I::hello_impossible, A::refuse, S::refused},
    {S::refused, I::hello_refusing, A::greet, S::refused},
    {S::refused, I::hello_closing, A::greet, S::waiting},
    {S::refused, I::hello_new, A::adopt, S::waiting, {}, S::fencing},
    {S::refused, I::hello_unanswered, A::greet, S::waiting},
    {S::refused, I::hello_answered, A::connect, S::connected, E::connected, S::refused},
    {S::refused, I::unopened, A::greet, S::refused},

    {S::connected, I::stop, A::send_closing, S::losing},
    {S::connected, I::unreachable, A::lose, S::losing},
    {S::connected, I::protocol_error, A::lose, S::losing},
    {S::connected, I::hello_refusing, A::lose, S::losing},
    {S::connected, I::hello_closing, A::close_sending, S::closing, E::closing},
    {S::connected, I::hello_new, A::lose, S::losing},
    {S::connected, I::heartbeat_missing, A::none, S::silent, E::silent},
    {S::connected, I::heartbeat_ended, A::lose, S::losing},

    {S::silent, I::stop, A::send_closing, S::losing},
    {S::silent, I::unreachable, A::lose, S::losing},
    {S::silent, I::protocol_error, A::lose, S::losing},
    {S::silent, I::hello_refusing, A::lose, S::losing},
    {S::silent, I::hello_closing, A::close_sending, S::closing, E::closing},
    {S::silent, I::hello_new, A::lose, S::losing},
    {S::silent, I::heartbeat, A::none, S::connected, E::alive},
    {S::silent, I::heartbeat_ended, A::lose, S::losing},

    {S::closing, I::stop, A::send_closing, S::losing},
    {S::closing, I::protocol_error, A::lose, S::losing},
    {S::closing, I::all_received, A::lose, S::losing},
    {S::closing, I::receive_overdue, A::lose, S::losing},

    {S::losing, I::quiet, A::none, S::fencing, E::lost},
    {S::losing, I::overdue, A::none, S::fencing, E::lost},

    {S::fencing, I::stop, A::none, S::stopping},
    {S::fencing, I::fenced, A::renew, S::waiting, {}, S::fencing},

    {S::stopping, I::fenced, A::set_reason, S::stopped},
};
} // namespace link_table

/// @return the step, or NULL where the event changes nothing
constexpr const LinkStep *link_step(LinkState state, LinkInput input)
{
    for (const LinkStep &step : link_table::steps)
        if (step.state == state && step.input == input)
            return &step;
    return nullptr;
}

/// No connection yet.
constexpr bool is_waiting(LinkState state)
{
    return state == LinkState::waiting || state == LinkState::refused;
}
/// Queues are open.
constexpr bool is_connected(LinkState state)
{
    return state == LinkState::connected || state == LinkState::silent;
}
/// The peer has stopped; what it sent is received.
constexpr bool is_closing(LinkState state)
{
    return state == LinkState::closing;
}
/// The peer's access is not yet known to be gone.
constexpr bool is_fencing(LinkState state)
{
    return state == LinkState::losing || state == LinkState::fencing ||
           state == LinkState::stopping;
}

} // namespace plx::pmd

#endif
