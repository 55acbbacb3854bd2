// SPDX-License-Identifier: BSD-3-Clause
// The gate and the protocol of sleeping as the driver has them, run through every order of their
// steps over a memory with store buffers and posted writes: nothing is slept through. With a step
// of the protocol taken away, something is.
#include "interleaved.hpp"

#include "sync/gate.hpp"
#include "sync/sleep.hpp"

#include <gtest/gtest.h>

using namespace plx;
using namespace plx::pmd;
using test::World;

namespace
{

/// What is shared, by number. Those of the code under test are numbered as they are made.
enum Variable : unsigned {
    sent,      ///< messages, as the sender counts them
    request,   ///< in the sender's memory
    rung_back, ///< the sender's control side is interrupted
    due,       ///< and has to look again
    arrived,   ///< messages in the receiver's memory
    answer,    ///< in the receiver's memory
    rung,      ///< the receiver is interrupted
    event,     ///< its event descriptor
    looking,   ///< a re-check is set
    guard,     ///< the lock of the receiving side
    taken,     ///< messages, as the receiver counts them
    first_made,
};
enum Queue : unsigned { to_receiver, to_sender, answers, bells, queue_count };
enum Write : uint64_t { line = 1, bell = 2 };

/// What is taken away.
struct Broken {
    bool barrier = false;        ///< the control side waits for no one's stores
    bool quiet = false;          ///< it never sees a burst inside
    bool count = false;          ///< an answer is good whatever it counts
    bool looks = false;          ///< no re-checks
    bool bell_overtakes = false; ///< doorbells come before what was stored ahead of them
};

World *world; // the one that is explored
Broken broken;
unsigned made;       // variables given out
unsigned busy_place; // the gate's second

struct ModelMemory {
    template <class T>
    class Atomic
    {
    public:
        explicit Atomic(T first) : place_(made++) { world->state.variables[place_] = first; }
        T load(std::memory_order) const
        {
            const T value = static_cast<T>(world->load(place_));
            return broken.quiet && place_ == busy_place && world->self != 0 ? T{0} : value;
        }
        void store(T value, std::memory_order order)
        {
            if (order == std::memory_order_seq_cst)
                world->store_through(place_, value);
            else
                world->store(place_, value);
        }

    private:
        unsigned place_;
    };
    template <class T>
    class Guarded
    {
    public:
        explicit Guarded(T first) : place_(made++) { world->state.variables[place_] = first; }
        operator T() const { return static_cast<T>(world->peek(place_)); }
        Guarded &operator=(T value)
        {
            world->poke(place_, value);
            return *this;
        }

    private:
        unsigned place_;
    };
    static void barrier()
    {
        if (!broken.barrier)
            world->barrier();
    }
};

/// The receiving side's queue.
struct ModelQueue {
    static constexpr uint32_t checks_after_ring = 1;
    unsigned watched = made++;

    void lock() { world->lock(guard); }
    void unlock() { world->poke(guard, 0); }
    bool open() const { return true; }
    uint32_t watch()
    {
        const uint64_t so_far = world->peek(taken);
        world->poke(watched, so_far);
        return static_cast<uint32_t>(so_far);
    }
    bool arrived() { return world->load(::arrived) > world->peek(watched); }

    void ask(uint32_t number) { world->send(to_sender, uint64_t{number} << 8); }
    uint64_t answer()
    {
        const uint64_t said = world->load(::answer);
        return broken.count ? wire::sleep_answer(static_cast<uint32_t>(said),
                                                 static_cast<uint32_t>(world->peek(watched)))
                            : said;
    }
    void recheck()
    {
        if (!broken.looks)
            world->poke(looking, 1);
    }
    void clear() { world->store_through(event, 0); }
    void signal() { world->store_through(event, 1); }
};

class SleepInEveryOrder : public testing::Test
{
protected:
    World here;

    test::Explored explored(unsigned messages, const Broken &what = {})
    {
        world = &here;
        broken = what;
        made = first_made;
        here.state = {};
        here.state.queues.resize(queue_count);
        here.state.threads.resize(5);

        BasicGate<ModelMemory> gate;
        busy_place = made - 1;
        SleepAnswers<ModelMemory> sender_side;
        ModelQueue queue;
        Sleeper<ModelMemory, ModelQueue> sleeper(queue);
        EXPECT_LE(made, test::variables_max);
        here.state.variables[first_made] = opened; // the gate, as after open(): word and turn
        here.state.variables[first_made + 2] = opened;

        const auto send = [&] {
            uint32_t seen = opened;
            for (unsigned i = 1; i <= messages; ++i) {
                const auto burst = [&] {
                    here.send(to_receiver, line);
                    here.store(sent, i);
                    return 1;
                };
                pass(gate, &seen, 0, burst, [&](uint32_t word) {
                    return first_burst_at<ModelMemory>(word, &seen, burst, [&] {
                        here.send(broken.bell_overtakes ? bells : to_receiver, bell);
                    });
                });
            }
        };
        const auto control = [&] {
            here.take(rung_back);
            uint64_t said = 0;
            if (sender_side.check(
                    static_cast<uint32_t>(here.load(request)), gate,
                    [&] { return static_cast<uint32_t>(here.load(sent)); }, &said))
                here.send(answers, said);
            if (sender_side.due())
                here.poke(rung_back, 1);
        };
        const auto receive = [&] {
            for (unsigned got = 0; got < messages;) {
                if (here.load(arrived) > got) {
                    here.poke(taken, ++got);
                    continue;
                }
                if (!sleeper.arm())
                    continue;
                here.send(to_sender, bell);
                here.await(event);
                sleeper.disarm();
            }
        };
        const auto interrupt = [&] {
            here.take(rung);
            sleeper.rung();
        };
        const auto recheck = [&] {
            here.take(looking);
            sleeper.recheck();
        };
        return test::explore(
            here,
            {{send, false}, {control, true}, {receive, false}, {interrupt, true}, {recheck, true}},
            arrive, 20'000'000);
    }

private:
    static constexpr uint32_t opened = 2;

    static void arrive(test::State &state, unsigned queue, uint64_t value)
    {
        auto &v = state.variables;
        if (queue == answers)
            v[::answer] = value;
        else if (queue == to_sender && value != bell)
            v[request] = value >> 8;
        else if (queue == to_sender)
            v[rung_back] = 1;
        else if (value == line)
            ++v[::arrived];
        else
            v[rung] = 1;
    }
};

TEST_F(SleepInEveryOrder, OneMessageIsNotSleptThrough)
{
    const test::Explored all = explored(1);
    EXPECT_TRUE(all.complete) << "too many states to look at";
    EXPECT_EQ(all.stuck, 0u);
}

TEST_F(SleepInEveryOrder, NorAreTwo)
{
    const test::Explored all = explored(2);
    EXPECT_TRUE(all.complete) << "too many states to look at";
    EXPECT_EQ(all.stuck, 0u);
}

TEST_F(SleepInEveryOrder, WithoutTheBarrierOneIs)
{
    EXPECT_GT(explored(1, {.barrier = true}).stuck, 0u);
}

TEST_F(SleepInEveryOrder, WithoutTheLookIntoTheGateOneIs)
{
    EXPECT_GT(explored(1, {.quiet = true}).stuck, 0u);
}

TEST_F(SleepInEveryOrder, WithoutTheCountOneIs)
{
    EXPECT_GT(explored(1, {.count = true}).stuck, 0u);
}

TEST_F(SleepInEveryOrder, WithoutRechecksOneIs)
{
    EXPECT_GT(explored(1, {.looks = true}).stuck, 0u);
}

TEST_F(SleepInEveryOrder, WhereDoorbellsOvertakeOneIsLeftToTheControlTick)
{
    EXPECT_GT(explored(1, {.bell_overtakes = true}).stuck, 0u);
}

} // namespace
