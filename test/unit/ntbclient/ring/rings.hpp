// SPDX-License-Identifier: BSD-3-Clause
// The memory of a connection between pages that cannot be touched: a load or store outside of it
// ends the test.
#ifndef TEST_NTBCLIENT_RINGS_HPP
#define TEST_NTBCLIENT_RINGS_HPP

#include "ring/receiver.hpp"
#include "ring/sender.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <vector>

namespace ntbc::test
{

class Rings
{
public:
    explicit Rings(uint32_t bytes) : bytes_(bytes)
    {
        // guard, lines, guard, ring 0, guard, ring 1, guard
        const size_t all = 5 * page_bytes + 2 * size_t{bytes};
        base_ = static_cast<uint8_t *>(
            mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        EXPECT_NE(base_, MAP_FAILED);
        size_ = all;
        mprotect(base_ + page_bytes, page_bytes, PROT_READ | PROT_WRITE);
        for (unsigned end = 0; end < 2; end++)
            mprotect(data(end), bytes, PROT_READ | PROT_WRITE);
    }
    ~Rings() { munmap(base_, size_); }

    Page &page() { return *reinterpret_cast<Page *>(base_ + page_bytes); }
    uint8_t *data(unsigned end)
    {
        return base_ + 3 * page_bytes + end * (size_t{bytes_} + page_bytes);
    }
    void open(Sender *sender) { sender->open(&page().direction[0], data(0), bytes_); }
    void open(Receiver *receiver) { receiver->open(&page().direction[0], data(0), bytes_); }
    Direction &lines() { return page().direction[0]; }
    uint32_t bytes() const { return bytes_; }

private:
    uint32_t bytes_;
    size_t size_ = 0;
    uint8_t *base_ = nullptr;
};

/// The byte at a place in the stream.
inline uint8_t byte_at(uint64_t place)
{
    return static_cast<uint8_t>(place * 167 + (place >> 8));
}

/// Words that a hostile end would try, and random ones.
class Words
{
public:
    explicit Words(uint32_t seed) : random_(seed) {}
    uint64_t next(uint64_t near)
    {
        const uint64_t some[] = {0,
                                 near,
                                 near - 1,
                                 near + 1,
                                 near + 4096,
                                 near - 4096,
                                 near + 4097,
                                 near + (uint64_t{1} << 32),
                                 count_mask,
                                 near | mark_end,
                                 near | mark_reset,
                                 near | mark_closed | (uint64_t{1} << 63),
                                 ~uint64_t{0},
                                 random_(),
                                 random_() & count_mask,
                                 near + random_() % 8192};
        return some[random_() % std::size(some)];
    }
    uint64_t number(uint64_t below) { return random_() % below; }

private:
    std::mt19937_64 random_;
};

} // namespace ntbc::test

#endif
