// SPDX-License-Identifier: BSD-3-Clause
#ifndef BENCH_PEERS_PAIR_PRIORITY_HPP
#define BENCH_PEERS_PAIR_PRIORITY_HPP

namespace peers
{

/// Real-time priority while it lives, where --realtime asks for it: only while something is
/// measured, since threads of what is measured share our core. Not allowed is no error: how long
/// our core was taken away is measured and told.
class Priority
{
public:
    Priority() { change(true); }
    ~Priority() { change(false); }
    Priority(const Priority &) = delete;
    Priority &operator=(const Priority &) = delete;

    inline static bool wanted = false;

private:
    static void change(bool realtime);
};

} // namespace peers

#endif
