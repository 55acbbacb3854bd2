// SPDX-License-Identifier: BSD-3-Clause
// Real-time priority of the polling thread while something is measured, on a machine that has other
// work to do. It lasts no longer than that: other threads share the core.
#ifndef APP_REALTIME_HPP
#define APP_REALTIME_HPP

namespace app
{

/// Of this thread. Not allowed is no error: the measurement is noisier.
void set_realtime(bool on);

/// The same for a scope.
class Realtime
{
public:
    /// @param on  false: changes nothing
    explicit Realtime(bool on) : on_(on)
    {
        if (on_)
            set_realtime(true);
    }
    ~Realtime()
    {
        if (on_)
            set_realtime(false);
    }
    Realtime(const Realtime &) = delete;
    Realtime &operator=(const Realtime &) = delete;

private:
    const bool on_;
};

} // namespace app

#endif
