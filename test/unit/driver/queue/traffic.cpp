// SPDX-License-Identifier: BSD-3-Clause
#include "traffic.hpp"

#include <deque>
#include <random>

#include <gtest/gtest.h>

namespace test_queue
{

void random_traffic(Pair &pair, unsigned rounds, uint32_t longest, uint32_t seed)
{
    std::mt19937 engine(seed);
    const auto random = [&] { return static_cast<uint32_t>(engine()); };
    std::deque<std::pair<uint32_t, uint32_t>> flying;
    std::vector<rte_mbuf *> waiting;
    std::deque<std::pair<uint32_t, uint32_t>> waiting_what;
    uint32_t id = 0;
    for (unsigned round = 0; round < rounds || !flying.empty() || !waiting.empty(); round++) {
        ASSERT_LT(round, rounds + 10000) << "no progress";
        for (unsigned n = round < rounds ? random() % 65 : 0; waiting.size() < n;) {
            const uint32_t length = random() % 4 == 0 ? random() % (longest + 1) : random() % 120;
            waiting.push_back(pair.message(length, id, 1 + length / 2000 + random() % 2));
            waiting_what.emplace_back(length, id++);
        }
        const int sent = pair.send(waiting);
        ASSERT_GE(sent, 0);
        waiting.erase(waiting.begin(), waiting.begin() + sent);
        for (int i = 0; i < sent; i++) {
            flying.push_back(waiting_what.front());
            waiting_what.pop_front();
        }
        if (pair.options.engine != nullptr)
            pair.options.engine->step(random() % 4096);
        for (rte_mbuf *m : pair.receive(random() % 65)) {
            ASSERT_FALSE(flying.empty());
            const auto [length, which] = flying.front();
            flying.pop_front();
            ASSERT_TRUE(Pair::matches(m, length, which)) << "message " << which;
            rte_pktmbuf_free(m);
        }
    }
    EXPECT_TRUE(pair.receive(1).empty()); // idle: the last credits go back
}

} // namespace test_queue
