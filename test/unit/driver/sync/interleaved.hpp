// SPDX-License-Identifier: BSD-3-Clause
// Runs the steps of a few threads in every order there is. A thread is a function over a World; a
// step is one access to something that is shared. What a thread has got back from its accesses so
// far is all there is to know of where it stands, so it is run again from its start, fed with that,
// to find its next step: no stacks are kept, and equal states are visited once.
#ifndef TEST_UNIT_DRIVER_INTERLEAVED_HPP
#define TEST_UNIT_DRIVER_INTERLEAVED_HPP

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

namespace test
{

inline constexpr unsigned variables_max = 24;

/// A store that has not got through: to a variable, or into a queue of posted writes.
struct Posted {
    bool to_queue;
    uint8_t where;
    uint64_t value;
};

struct ThreadState {
    std::vector<uint64_t> got;    ///< what its accesses gave
    std::vector<Posted> buffered; ///< its store buffer, oldest first
    bool ended = false;
};

struct State {
    std::array<uint64_t, variables_max> variables{};
    std::vector<std::vector<uint64_t>> queues;
    std::vector<ThreadState> threads;

    std::string key() const
    {
        std::string k(reinterpret_cast<const char *>(variables.data()), sizeof(variables));
        const auto add = [&k](uint64_t v) {
            k.append(reinterpret_cast<const char *>(&v), sizeof(v));
        };
        for (const auto &queue : queues) {
            add(queue.size());
            for (const uint64_t v : queue)
                add(v);
        }
        for (const ThreadState &t : threads) {
            add(t.got.size() << 1 | (t.ended ? 1 : 0));
            for (const uint64_t v : t.got)
                add(v);
            add(t.buffered.size());
            for (const Posted &p : t.buffered) {
                add(uint64_t{p.to_queue} << 8 | p.where);
                add(p.value);
            }
        }
        return k;
    }
};

/// What a thread does is done through one of these.
class World
{
public:
    /// Thrown through a thread at the step that it has to wait for.
    struct Pause {
    };

    State state;
    unsigned self = 0; ///< the thread that runs

    uint64_t load(unsigned variable)
    {
        return step([] { return true; }, [=, this] { return seen(variable); });
    }
    void store(unsigned variable, uint64_t value) { post({false, byte(variable), value}); }
    void send(unsigned queue, uint64_t value) { post({true, byte(queue), value}); }
    /// A store with everything before it: through at once.
    void store_through(unsigned variable, uint64_t value)
    {
        step([] { return true; },
             [=, this] {
                 flush(state.threads[self]);
                 state.variables[variable] = value;
                 return 0;
             });
    }
    /// Waits until the variable is not 0, and makes it 0 in the same step.
    void take(unsigned variable)
    {
        step([=, this] { return state.variables[variable] != 0; },
             [=, this] {
                 state.variables[variable] = 0;
                 return 0;
             });
    }
    void await(unsigned variable)
    {
        step([=, this] { return state.variables[variable] != 0; }, [] { return 0; });
    }
    /// Waits until it is 0, and makes it 1.
    void lock(unsigned variable)
    {
        step([=, this] { return state.variables[variable] == 0; },
             [=, this] {
                 state.variables[variable] = 1;
                 return 0;
             });
    }
    /// Every thread's stores get through.
    void barrier()
    {
        step([] { return true; },
             [this] {
                 for (ThreadState &t : state.threads)
                     flush(t);
                 return 0;
             });
    }
    /// What no one else touches meanwhile: no step of its own.
    uint64_t peek(unsigned variable)
    {
        return quietly([=, this] { return state.variables[variable]; });
    }
    void poke(unsigned variable, uint64_t value)
    {
        quietly([=, this] { return state.variables[variable] = value; });
    }

    /// Has a thread make its next step. @return false: it has to wait
    bool run(unsigned thread, const std::function<void()> &body, bool again)
    {
        self = thread;
        next_ = 0;
        stepped_ = false;
        paused_ = false;
        try {
            body();
        } catch (const Pause &) {
            return stepped_;
        }
        if (again)
            state.threads[thread].got.clear(); // from its start, where it remembers nothing
        else
            state.threads[thread].ended = true;
        return true;
    }
    static void flush_one(State &state, ThreadState &t)
    {
        const Posted p = t.buffered.front();
        t.buffered.erase(t.buffered.begin());
        if (p.to_queue)
            state.queues[p.where].push_back(p.value);
        else
            state.variables[p.where] = p.value;
    }

private:
    static uint8_t byte(unsigned v) { return static_cast<uint8_t>(v); }
    void flush(ThreadState &t)
    {
        while (!t.buffered.empty())
            flush_one(state, t);
    }
    uint64_t seen(unsigned variable) const
    {
        const auto &buffered = state.threads[self].buffered;
        for (auto p = buffered.rbegin(); p != buffered.rend(); ++p)
            if (!p->to_queue && p->where == variable)
                return p->value;
        return state.variables[variable];
    }
    void post(const Posted &p)
    {
        step([] { return true; },
             [=, this] {
                 state.threads[self].buffered.push_back(p);
                 return 0;
             });
    }
    template <class Can, class Do>
    uint64_t step(const Can &can, const Do &act)
    {
        auto &got = state.threads[self].got;
        if (next_ < got.size())
            return got[next_++];
        if (stepped_ || !can()) {
            paused_ = true;
            throw Pause{};
        }
        stepped_ = true;
        const auto value = static_cast<uint64_t>(act());
        state.threads[self].got.push_back(value);
        ++next_;
        return value;
    }
    template <class Do>
    uint64_t quietly(const Do &act)
    {
        if (paused_)
            return 0; // from a destructor on the way out
        auto &got = state.threads[self].got;
        if (next_ < got.size())
            return got[next_++];
        const uint64_t value = act();
        got.push_back(value);
        ++next_;
        return value;
    }

    size_t next_ = 0;
    bool stepped_ = false;
    bool paused_ = false;
};

/// A thread of the model. One that goes @p again starts anew when it ends, and needs not end.
struct ModelThread {
    std::function<void()> body;
    bool again;
};

struct Explored {
    size_t states = 0;
    size_t stuck = 0; ///< states in which nothing can happen and a thread has not ended
    bool complete = false;
};

/// @param arrive what becomes of the oldest write of a queue at the other end
inline Explored explore(World &world, const std::vector<ModelThread> &threads,
                        const std::function<void(State &, unsigned queue, uint64_t value)> &arrive,
                        size_t states_max)
{
    Explored result;
    std::unordered_set<size_t> visited; // of keys: 64 bits do for millions
    std::vector<State> open{world.state};
    visited.insert(std::hash<std::string>{}(world.state.key()));
    while (!open.empty() && visited.size() <= states_max) {
        const State from = std::move(open.back());
        open.pop_back();
        bool moved = false;
        const auto reach = [&](const State &to) {
            moved = true;
            if (visited.insert(std::hash<std::string>{}(to.key())).second)
                open.push_back(to);
        };
        for (unsigned t = 0; t < threads.size(); ++t) {
            if (from.threads[t].ended)
                continue;
            world.state = from;
            if (world.run(t, threads[t].body, threads[t].again))
                reach(world.state);
        }
        for (unsigned t = 0; t < threads.size(); ++t) {
            if (from.threads[t].buffered.empty())
                continue;
            State to = from;
            World::flush_one(to, to.threads[t]);
            reach(to);
        }
        for (unsigned q = 0; q < from.queues.size(); ++q) {
            if (from.queues[q].empty())
                continue;
            State to = from;
            const uint64_t value = to.queues[q].front();
            to.queues[q].erase(to.queues[q].begin());
            arrive(to, q, value);
            reach(to);
        }
        if (moved)
            continue;
        for (unsigned t = 0; t < threads.size(); ++t)
            if (!threads[t].again && !from.threads[t].ended) {
                ++result.stuck;
                break;
            }
    }
    result.states = visited.size();
    result.complete = open.empty();
    return result;
}

} // namespace test

#endif
