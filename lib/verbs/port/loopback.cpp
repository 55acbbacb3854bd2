// SPDX-License-Identifier: BSD-3-Clause
#include "port/loopback.hpp"

#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "locked.hpp"

namespace ntb::verbs
{
namespace
{

// In front of each message; `bytes` of the last one before the ring's end may say that there is
// none.
struct Prefix {
    std::uint64_t bytes;
    std::uint64_t reserved;
};
constexpr std::uint64_t skip = ~std::uint64_t{0};
constexpr std::uint64_t granule = 64;

std::uint64_t footprint(std::uint64_t bytes)
{
    return (sizeof(Prefix) + bytes + granule - 1) & ~(granule - 1);
}

/// What one end maps of the other one's.
class Mapped final : public Segment
{
public:
    static std::shared_ptr<Segment> create(int descriptor, std::uint64_t bytes, bool writable)
    {
        const int rights = PROT_READ | (writable ? PROT_WRITE : 0);
        void *const data = mmap(nullptr, bytes, rights, MAP_SHARED, descriptor, 0);
        if (data == MAP_FAILED)
            return nullptr;
        return std::shared_ptr<Segment>(new Mapped(static_cast<std::byte *>(data), bytes));
    }
    ~Mapped() override { munmap(data(), bytes()); }

private:
    Mapped(std::byte *data, std::uint64_t bytes) : Segment(data, bytes, -1) {}
};

} // namespace

std::unique_ptr<Loopback> Loopback::create(std::uint32_t ring_bytes)
{
    if (ring_bytes < 4096 || !std::has_single_bit(ring_bytes)) {
        errno = EINVAL;
        return nullptr;
    }
    std::unique_ptr<Loopback> loopback(new (std::nothrow) Loopback);
    if (!loopback)
        return nullptr;
    loopback->bytes_ = ring_bytes;
    for (int i = 0; i < 2; ++i) {
        Ring &ring = loopback->rings_[i];
        ring.data.reset(new (std::nothrow) std::byte[ring_bytes]);
        if (!ring.data || pipe2(ring.bell, O_CLOEXEC | O_NONBLOCK) != 0)
            return nullptr;
        loopback->ends_[i].join(*loopback, loopback->rings_[1 - i], ring);
    }
    return loopback;
}

Loopback::~Loopback()
{
    for (Ring &ring : rings_)
        for (const int fd : ring.bell)
            if (fd >= 0)
                close(fd);
    for (const Grant &grant : grants_)
        if (grant.number != 0)
            close(grant.descriptor);
    pthread_mutex_destroy(&grants_mutex_);
}

void Loopback::End::join(Loopback &loopback, Ring &in, Ring &out)
{
    static_assert(sizeof(in.shown) == sizeof(std::uint64_t));
    loopback_ = &loopback;
    in_ = &in;
    out_ = &out;
    own_word_ = &out.left;
    watch_.word = reinterpret_cast<const std::uint64_t *>(&in.shown);
    watch_.next = in.data.get(); // somewhere
}

std::byte *Loopback::End::reserve(std::uint32_t bytes)
{
    if (full_.load(std::memory_order_relaxed) || !alive() || bytes > longest())
        return nullptr;
    const std::uint64_t size = loopback_->bytes_;
    std::uint64_t at = out_->head.load(std::memory_order_relaxed);
    const std::uint64_t wanted = footprint(bytes);
    const std::uint64_t to_end = size - (at & (size - 1));
    const std::uint64_t skipped = to_end < wanted ? to_end : 0;
    if (at + skipped + wanted - tail_seen_ > size) {
        tail_seen_ = out_->tail.load(std::memory_order_acquire);
        if (at + skipped + wanted - tail_seen_ > size)
            return nullptr;
    }
    if (skipped != 0) {
        const Prefix prefix = {skip, 0};
        std::memcpy(&out_->data[at & (size - 1)], &prefix, sizeof(prefix));
        at += skipped;
    }
    reserved_ = at;
    return &out_->data[(at & (size - 1)) + sizeof(Prefix)];
}

void Loopback::End::commit(std::uint32_t bytes, const iovec *parts, int n)
{
    std::byte *const at = &out_->data[reserved_ & (loopback_->bytes_ - 1)];
    for (int i = 0; i < n; ++i) {
        std::memcpy(at + sizeof(Prefix) + bytes, parts[i].iov_base, parts[i].iov_len);
        bytes += static_cast<std::uint32_t>(parts[i].iov_len);
    }
    const Prefix prefix = {bytes, 0};
    std::memcpy(at, &prefix, sizeof(prefix));
    const std::uint64_t head = reserved_ + footprint(bytes);
    // Both exchanges pair with those of hold(): a message is shown by one of the two.
    out_->head.exchange(head);
    if (!out_->held.load())
        show(head);
}

// The exchange pairs with that of arm(): either the message is seen there, or the sleeper here.
void Loopback::End::show(std::uint64_t head)
{
    std::uint64_t shown = out_->shown.load();
    while (shown < head && !out_->shown.compare_exchange_weak(shown, head)) {
    }
    if (out_->sleeps.load() && out_->sleeps.exchange(false))
        ring_bell(*out_);
}

void Loopback::End::ring_bell(Ring &ring)
{
    const char byte = 0;
    // A full pipe is readable, which is all that a bell has to be.
    [[maybe_unused]] const ssize_t written = write(ring.bell[1], &byte, 1);
}

void Loopback::End::hold(bool held)
{
    out_->held.exchange(held);
    if (!held)
        show(out_->head.load());
}

bool Loopback::End::receive(Incoming &message)
{
    const std::uint64_t size = loopback_->bytes_;
    std::uint64_t at = in_->tail.load(std::memory_order_relaxed);
    const std::uint64_t shown = in_->shown.load(std::memory_order_acquire);
    if (at == shown)
        return false;
    Prefix prefix;
    std::memcpy(&prefix, &in_->data[at & (size - 1)], sizeof(prefix));
    if (prefix.bytes == skip) {
        at += size - (at & (size - 1));
        std::memcpy(&prefix, &in_->data[at & (size - 1)], sizeof(prefix));
    }
    next_ = at + footprint(prefix.bytes);
    message = {&in_->data[(at & (size - 1)) + sizeof(Prefix)],
               static_cast<std::uint32_t>(prefix.bytes), next_ != shown};
    return true;
}

void Loopback::End::release()
{
    // The exchange pairs with that of arm().
    in_->tail.exchange(next_);
    watch_.seen = next_;
    if (in_->starves.load() && in_->starves.exchange(false))
        ring_bell(*out_); // the peer receives there
}

// A skip to the ring's end may come before the longest message.
bool Loopback::End::has_room() const
{
    return loopback_->bytes_ - (out_->head.load() - out_->tail.load()) >= 2 * footprint(longest());
}

bool Loopback::End::arm(bool for_room)
{
    in_->sleeps.exchange(true);
    if (for_room)
        out_->starves.exchange(true);
    if (in_->tail.load(std::memory_order_relaxed) == in_->shown.load() && alive() &&
        !(for_room && has_room()))
        return true;
    disarm();
    return false;
}

void Loopback::End::disarm()
{
    in_->sleeps.store(false, std::memory_order_relaxed);
    out_->starves.store(false, std::memory_order_relaxed);
    char bytes[64];
    while (read(in_->bell[0], bytes, sizeof(bytes)) > 0) {
    }
}

// ---- memory

std::uint64_t Loopback::End::grant(const std::shared_ptr<Segment> &segment, bool writable)
{
    const Locked locked(loopback_->grants_mutex_);
    if (loopback_->grants_nothing_ || !alive())
        return 0;
    for (Grant &grant : loopback_->grants_) {
        if (grant.number != 0)
            continue;
        const int descriptor = fcntl(segment->descriptor(), F_DUPFD_CLOEXEC, 0);
        if (descriptor < 0)
            return 0;
        grant = {loopback_->next_grant_++, this, descriptor, segment->bytes(), writable};
        return grant.number;
    }
    return 0;
}

void Loopback::End::revoke(std::uint64_t number)
{
    const Locked locked(loopback_->grants_mutex_);
    for (Grant &grant : loopback_->grants_) {
        if (number == 0 || grant.number != number || grant.by != this)
            continue;
        ::close(grant.descriptor);
        grant = {};
    }
}

Port::Opening Loopback::End::open(std::uint64_t number)
{
    const Locked locked(loopback_->grants_mutex_);
    for (const Grant &grant : loopback_->grants_)
        if (number != 0 && grant.number == number && grant.by != this)
            return {Mapped::create(grant.descriptor, grant.bytes, grant.writable), grant.writable};
    return {};
}

} // namespace ntb::verbs
