// SPDX-License-Identifier: BSD-3-Clause
#include "late_engine.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace test_queue
{

namespace
{

/// Eight aligned bytes as one, seen after all that was stored before.
void land(std::byte *to, const std::byte *from, uint8_t bytes)
{
    if (bytes != 8) {
        std::memcpy(to, from, bytes);
        return;
    }
    uint64_t word;
    std::memcpy(&word, from, sizeof(word));
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t *>(to))
        .store(word, std::memory_order_release);
}

} // namespace

LateEngine::LateEngine(uint32_t capacity, unsigned seed, Breach breach)
    : random_(seed), breach_(breach), capacity_(capacity)
{
}

plx::queue::Engine LateEngine::border()
{
    return {
        .ctx = this,
        .room =
            [](void *ctx) {
                LateEngine &e = *self(ctx);
                return e.capacity_ - static_cast<uint32_t>(e.given_count_ - e.completed());
            },
        .copy =
            [](void *ctx, uint64_t from, uint64_t to, uint32_t bytes) {
                LateEngine &e = *self(ctx);
                if (e.given_count_ - e.completed() >= e.capacity_ || bytes == 0 || e.failed_)
                    std::abort(); // more than there was room for
                e.given_.push_back({reinterpret_cast<const std::byte *>(from),
                                    reinterpret_cast<std::byte *>(to), bytes});
                e.given_count_++;
            },
        .start =
            [](void *ctx) {
                LateEngine &e = *self(ctx);
                e.started_.insert(e.started_.end(), e.given_.begin(), e.given_.end());
                e.given_.clear();
                e.starts_++;
                if (e.eager)
                    e.step(8);
            },
        .completed =
            [](void *ctx) {
                LateEngine &e = *self(ctx);
                if (e.eager)
                    e.step(64);
                return e.completed();
            },
        .failed = [](void *ctx) { return self(ctx)->failed_; },
        .halt = [](void *ctx) { return self(ctx)->halt(); },
        .capacity = capacity_,
    };
}

uint64_t LateEngine::completed() const
{
    if (breach_ == Breach::done_early)
        return given_count_;
    // No one moves an eager engine once all its mbufs were freed: it ends what it has read first.
    return eager && !flying_.empty() ? flying_.front().order - 1 : read_count_;
}

void LateEngine::read_one()
{
    const Copy c = started_.front();
    if (read_count_ >= fail_at_) {
        failed_ = true;
        started_.clear();
        return;
    }
    started_.pop_front();
    read_count_++;
    const bool head = breach_ == Breach::heads_whole && c.bytes == 8 && c.to + 8 == last_to_;
    last_to_ = c.to;
    order_ += !head;
    for (uint32_t at = 0; at < c.bytes;) {
        const auto room = 8 - reinterpret_cast<uintptr_t>(c.to + at) % 8;
        Piece p{order_, c.to + at, static_cast<uint8_t>(std::min<size_t>(room, c.bytes - at)), {}};
        std::memcpy(p.data, c.from + at, p.bytes);
        at += p.bytes;
        flying_.push_back(p);
    }
}

void LateEngine::land_one()
{
    size_t ready = flying_.size();
    if (breach_ != Breach::unordered) {
        // The oldest copy first: pieces lie in the order of their copies.
        const uint64_t oldest = flying_.front().order;
        ready = 1;
        while (ready < flying_.size() && flying_[ready].order == oldest)
            ready++;
    }
    const size_t i = random_() % ready;
    land(flying_[i].to, flying_[i].data, flying_[i].bytes);
    flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(i));
}

void LateEngine::step(unsigned n)
{
    for (; n > 0; n--) {
        if (!started_.empty() && (flying_.empty() || random_() % 8 == 0))
            read_one();
        else if (!flying_.empty())
            land_one();
    }
}

void LateEngine::finish()
{
    while (!started_.empty())
        read_one();
    while (!flying_.empty())
        land_one();
}

bool LateEngine::halt()
{
    if (halts_late_ > 0) {
        halts_late_--;
        return false;
    }
    given_.clear();
    started_.clear();
    flying_.clear();
    given_count_ = read_count_ = order_ = 0;
    last_to_ = nullptr;
    return true;
}

} // namespace test_queue
