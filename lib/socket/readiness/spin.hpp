// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_READINESS_SPIN_HPP
#define NTB_SOCKET_READINESS_SPIN_HPP

#include <atomic>
#include <cstdint>

namespace ntb::socket
{

/// What the waiters of a process share, and what tests replace.
struct Spinning {
    /// The longest window; 0: nobody spins.
    std::uint32_t most_us = 50;
    /// More waiters than this never spin at a time.
    std::uint32_t processors = 1;
    /// Those that spin now; perhaps in memory that other processes share.
    std::atomic<std::uint32_t> *spinners;
    /// Any monotonic clock.
    std::uint64_t (*now_ns)();
    /// A waiter asks the kernel too at least each so manieth time that it looks.
    std::uint32_t kernel_every = 16;
};

/// The process's: as many processors as it may use, its own counter of spinners.
Spinning &process_spinning();

/// How long one set, or one thread that waits for single descriptors, looks before it sleeps. It
/// grows with success and shrinks with failure.
class Window
{
public:
    std::uint32_t us() const { return us_.load(std::memory_order_relaxed); }
    void succeeded(std::uint32_t most_us);
    void failed();

private:
    std::atomic<std::uint32_t> us_ = 20; ///< threads of one set share it
};

/// In a child: the parent's threads that spin are not there.
void forget_spinners_after_fork();

/// One wait's laps.
class Spin
{
public:
    Spin(const Spinning &spinning, Window &window) : spinning_(spinning), window_(window) {}
    ~Spin() { end(false); }

    Spin(const Spin &) = delete;
    Spin &operator=(const Spin &) = delete;

    /// Pauses, and lets others run now and then. @retval false the window is over, or nobody is to
    /// spin
    bool lap();
    /// @param success  something came
    void end(bool success);

private:
    bool begin();

    const Spinning &spinning_;
    Window &window_;
    std::uint64_t until_ = 0;
    std::uint32_t laps_ = 0;
    bool spins_ = false;
    bool over_ = false;
};

} // namespace ntb::socket

#endif
