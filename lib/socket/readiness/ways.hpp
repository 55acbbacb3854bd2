// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_READINESS_WAYS_HPP
#define NTB_SOCKET_READINESS_WAYS_HPP

#include <atomic>
#include <cstdint>

namespace ntb::socket
{

/// By which of two ways a short sleep is over sooner. Which one that is depends on where the kernel
/// runs who is woken, so both are tried now and then, in turns, and again once the better one has
/// become slower (decision 052). Threads that wait for single descriptors share what was learned;
/// one that is displaced between two calls makes a trial worth less, and no more.
class Ways
{
public:
    enum class Way : std::uint32_t { Bell, Word };

    /// Of the next sleep.
    Way next() const
    {
        const std::uint32_t n = step_.load(std::memory_order_relaxed);
        return n < trial ? in_turn(n) : better_.load(std::memory_order_relaxed);
    }
    /// One took so long, and did not end by its time.
    void took(Way way, std::uint64_t ns);

    /// Longer ones count as this: what a wake-up takes is little of them.
    static constexpr std::uint64_t most_ns = 200000;
    /// Sleeps of a trial, and those until the next one.
    static constexpr std::uint32_t trial = 64, between = 4096;

private:
    /// Each way has its turn twice, and the first sleeps of a turn are those in which the kernel
    /// may still move who is woken.
    static constexpr std::uint32_t turn = trial / 4, first = turn / 4;
    /// What the better one is looked at by until then.
    static constexpr std::uint32_t block = 128;

    static Way in_turn(std::uint32_t n) { return n / turn % 2 == 0 ? Way::Word : Way::Bell; }
    void decide();

    std::atomic<std::uint32_t> step_ = 0; ///< sleeps since the trial began
    std::atomic<Way> better_ = Way::Bell;
    std::atomic<std::uint64_t> sums_[2] = {}; ///< of the trial, by way
    std::atomic<std::uint64_t> sum_ = 0;      ///< of the block
    std::atomic<std::uint64_t> usual_ = 0; ///< of a block of the better one, right after the trial
};

} // namespace ntb::socket

#endif
