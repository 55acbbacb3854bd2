// SPDX-License-Identifier: BSD-3-Clause
// A copy engine that takes its time: it reads a source some time after it was started, and what it
// has read arrives later still, in pieces. It keeps what queue/engine.hpp promises and no more.
#ifndef TEST_QUEUE_LATE_ENGINE_HPP
#define TEST_QUEUE_LATE_ENGINE_HPP

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>

#include "queue/engine.hpp"

namespace test_queue
{

/// IOVAs and bus addresses are pointers of this process.
class LateEngine
{
public:
    /// What a test takes away of the promises, to see that it is missed.
    enum class Breach {
        none,
        done_early,  ///< counts a copy before its source was read
        unordered,   ///< copies arrive in any order (relaxed ordering)
        heads_whole, ///< the two copies of a header line are as one
    };

    explicit LateEngine(uint32_t capacity = 2048, unsigned seed = 1, Breach breach = Breach::none);
    LateEngine(const LateEngine &) = delete;
    LateEngine &operator=(const LateEngine &) = delete;

    plx::queue::Engine border();
    /// Reads and lets arrive up to @p n pieces of work, at random.
    void step(unsigned n);
    /// Until nothing is left that was started.
    void finish();
    uint64_t given() const { return given_count_; }
    uint64_t starts() const { return starts_; }

    /// The copy with this number, from 0 on, fails, and the engine with it.
    void fail_at(uint64_t copy) { fail_at_ = copy; }
    /// halt() says "not yet" so many times.
    void halts_late(unsigned times) { halts_late_ = times; }
    /// Works in each of its own calls, without step().
    bool eager = false;

private:
    struct Copy {
        const std::byte *from;
        std::byte *to;
        uint32_t bytes;
    };
    /// Aligned eight bytes or less that arrive at once; pieces of a lower order arrive first.
    struct Piece {
        uint64_t order;
        std::byte *to;
        uint8_t bytes;
        std::byte data[8];
    };

    static LateEngine *self(void *ctx) { return static_cast<LateEngine *>(ctx); }
    void read_one();
    void land_one();
    uint64_t completed() const;
    bool halt();

    std::deque<Copy> given_, started_;
    std::deque<Piece> flying_;
    std::mt19937 random_;
    Breach breach_;
    uint32_t capacity_;
    uint64_t given_count_ = 0, read_count_ = 0, order_ = 0, starts_ = 0;
    uint64_t fail_at_ = UINT64_MAX;
    unsigned halts_late_ = 0;
    bool failed_ = false;
    std::byte *last_to_ = nullptr;
};

} // namespace test_queue

#endif
