// SPDX-License-Identifier: BSD-3-Clause
#include "broker/account.hpp"

namespace ntbd
{

namespace
{
constexpr Quota nothing = {0, 0, 0, 0, 0};
} // namespace

Quota &Accounts::of(uid_t uid)
{
    return used_.try_emplace(uid, nothing).first->second;
}

void Accounts::forget_idle(uid_t uid)
{
    if (of(uid) == nothing)
        used_.erase(uid);
}

bool Accounts::take_client(uid_t uid)
{
    const bool fits = of(uid).clients < config_.quota_of(uid).clients;
    if (fits)
        of(uid).clients++;
    forget_idle(uid);
    return fits;
}

bool Accounts::take_listener(uid_t uid)
{
    const bool fits = of(uid).listeners < config_.quota_of(uid).listeners;
    if (fits)
        of(uid).listeners++;
    forget_idle(uid);
    return fits;
}

// What counts, and has memory.
bool Accounts::take(uid_t uid, uint32_t Quota::*count, uint64_t bytes)
{
    const Quota &quota = config_.quota_of(uid);
    Quota &used = of(uid);
    const bool fits = used.*count < quota.*count && used.bytes <= quota.bytes &&
                      bytes <= quota.bytes - used.bytes;
    if (fits) {
        (used.*count)++;
        used.bytes += bytes;
    }
    forget_idle(uid);
    return fits;
}

bool Accounts::take_connection(uid_t uid, uint64_t bytes)
{
    return take(uid, &Quota::connections, bytes);
}

bool Accounts::take_segment(uid_t uid, uint64_t bytes)
{
    return take(uid, &Quota::segments, bytes);
}

void Accounts::give_client(uid_t uid)
{
    of(uid).clients--;
    forget_idle(uid);
}

void Accounts::give_listener(uid_t uid)
{
    of(uid).listeners--;
    forget_idle(uid);
}

void Accounts::give_connection(uid_t uid, uint64_t bytes)
{
    of(uid).connections--;
    of(uid).bytes -= bytes;
    forget_idle(uid);
}

void Accounts::give_segment(uid_t uid, uint64_t bytes)
{
    of(uid).segments--;
    of(uid).bytes -= bytes;
    forget_idle(uid);
}

} // namespace ntbd
