// SPDX-License-Identifier: BSD-3-Clause
// Signal handlers are counted: a call that looks at a ring and is not in the kernel has to end,
// too, when one has run (doc/socket-protocol.md, rule W9).
#include "preload/state.hpp"
#include "readiness/handlers.hpp"

#include <csignal>
#include <cstdarg>

namespace ntb::socket::preload
{

namespace
{
constexpr int most_signals = 65;

struct Handler {
    std::atomic<void *> call; ///< of either kind
    std::atomic<int> flags;
    std::atomic<bool> interrupts; ///< where signal() sets it, as siginterrupt() has said
};
Handler handlers[most_signals];

void run(int number, siginfo_t *info, void *context)
{
    const Handler &handler = handlers[number];
    const int flags = handler.flags.load();
    handler_runs((flags & SA_RESTART) != 0);
    void *call = handler.call.load();
    if ((flags & SA_SIGINFO) != 0)
        reinterpret_cast<void (*)(int, siginfo_t *, void *)>(call)(number, info, context);
    else
        reinterpret_cast<SignalHandler>(call)(number);
}

bool is_handler(const struct sigaction &action)
{
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN &&
           action.sa_handler != SIG_ERR;
}

// The program sees its own handlers.
int change(int number, const struct sigaction *now, struct sigaction *before)
{
    if (number < 1 || number >= most_signals || state.figures == nullptr || !is_own_process())
        return real().sigaction(number, now, before);
    Handler &handler = handlers[number];
    void *old_call = handler.call.load();
    const int old_flags = handler.flags.load();
    struct sigaction ours;
    const bool wraps = now != nullptr && is_handler(*now);
    if (wraps) {
        ours = *now;
        handler.call = reinterpret_cast<void *>(now->sa_sigaction);
        handler.flags = now->sa_flags;
        ours.sa_sigaction = run;
        ours.sa_flags |= SA_SIGINFO;
    }
    const int status = real().sigaction(number, wraps ? &ours : now, before);
    if (status != 0 && wraps) {
        handler.call = old_call;
        handler.flags = old_flags;
    }
    if (status == 0 && before != nullptr && before->sa_sigaction == run) {
        before->sa_sigaction = reinterpret_cast<void (*)(int, siginfo_t *, void *)>(old_call);
        if ((old_flags & SA_SIGINFO) == 0)
            before->sa_flags &= ~SA_SIGINFO;
    }
    return status;
}

void (*set(int number, void (*handler)(int), int flags))(int)
{
    struct sigaction now = {}, before = {};
    now.sa_handler = handler;
    now.sa_flags = flags;
    // As signal() has it: the signal itself is blocked meanwhile.
    if ((flags & SA_NODEFER) == 0)
        sigaddset(&now.sa_mask, number);
    return change(number, &now, &before) == 0 ? before.sa_handler : SIG_ERR;
}

int bsd_flags(int number)
{
    return number >= 1 && number < most_signals && handlers[number].interrupts.load() ? 0
                                                                                      : SA_RESTART;
}
} // namespace

NTB_EXPORT(int, sigaction, int number, const struct sigaction *now, struct sigaction *before)
{
    return change(number, now, before);
}

NTB_EXPORT(SignalHandler, signal, int number, SignalHandler handler)
{
    return state.figures == nullptr ? real().signal(number, handler)
                                    : set(number, handler, bsd_flags(number));
}

NTB_EXPORT(SignalHandler, bsd_signal, int number, SignalHandler handler)
{
    return state.figures == nullptr ? real().bsd_signal(number, handler)
                                    : set(number, handler, bsd_flags(number));
}

NTB_EXPORT(SignalHandler, __sysv_signal, int number, SignalHandler handler)
{
    return state.figures == nullptr
               ? real().__sysv_signal(number, handler)
               : set(number, handler, static_cast<int>(SA_RESETHAND | SA_NODEFER));
}

// libc changes the kernel's flags by itself, and what its own signal() is to set.
NTB_EXPORT(int, siginterrupt, int number, int interrupts)
{
    const int status = real().siginterrupt(number, interrupts);
    if (status != 0 || (state.figures != nullptr && !is_own_process()))
        return status;
    Handler &handler = handlers[number];
    handler.interrupts = interrupts != 0;
    if (interrupts != 0)
        handler.flags.fetch_and(~SA_RESTART);
    else
        handler.flags.fetch_or(SA_RESTART);
    return status;
}

} // namespace ntb::socket::preload
