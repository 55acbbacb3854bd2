// SPDX-License-Identifier: BSD-3-Clause
// What each user has at the daemon, against the quotas.
#ifndef NTBD_BROKER_ACCOUNT_HPP
#define NTBD_BROKER_ACCOUNT_HPP

#include "config/config.hpp"

#include <map>

namespace ntbd
{

class Accounts
{
public:
    explicit Accounts(const Config &config) : config_(config) {}

    // false: the quota does not admit one more. What was taken before a reload stays.
    bool take_client(uid_t uid);
    bool take_listener(uid_t uid);
    bool take_connection(uid_t uid, uint64_t bytes);
    bool take_segment(uid_t uid, uint64_t bytes);
    void give_client(uid_t uid);
    void give_listener(uid_t uid);
    void give_connection(uid_t uid, uint64_t bytes);
    void give_segment(uid_t uid, uint64_t bytes);

    const std::map<uid_t, Quota> &used() const { return used_; }

private:
    Quota &of(uid_t uid);
    bool take(uid_t uid, uint32_t Quota::*count, uint64_t bytes);
    void forget_idle(uid_t uid);

    const Config &config_;
    std::map<uid_t, Quota> used_;
};

} // namespace ntbd

#endif
