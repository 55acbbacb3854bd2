// SPDX-License-Identifier: BSD-3-Clause
#include "table/table.hpp"

#include "kernel/memory.hpp"

#include <algorithm>

namespace ntb::socket
{

namespace
{
template <typename T>
T *map(std::size_t count)
{
    return kernel::map<T>(count, MAP_PRIVATE | MAP_NORESERVE);
}

template <typename T>
void unmap(T *&at, std::size_t count)
{
    kernel::unmap(at, count);
    at = nullptr;
}
} // namespace

bool Table::make(std::size_t descriptors, std::uint32_t objects, void (*over)(Object *))
{
    descriptors = (descriptors + 63) / 64 * 64;
    slots_ = map<std::atomic<Object *>>(descriptors);
    hidden_ = map<std::atomic<std::uint64_t>>(descriptors / 64);
    added_ = map<std::atomic<std::uint64_t>>(descriptors / 64);
    objects_ = map<Object>(objects);
    size_ = descriptors;
    count_ = objects;
    over_ = over;
    if (slots_ != nullptr && hidden_ != nullptr && added_ != nullptr && objects_ != nullptr)
        return true;
    unmake();
    return false;
}

void Table::unmake()
{
    unmap(slots_, size_);
    unmap(hidden_, size_ / 64);
    unmap(added_, size_ / 64);
    unmap(objects_, count_);
    size_ = 0;
    count_ = 0;
    free_ = 0;
    fresh_ = 0;
    highest_ = 0;
}

// The number stands for something else since it was looked up.
Object *Table::use_another(Object *object, int fd)
{
    done(object);
    return use(fd);
}

Object *Table::add(int fd, Object::Kind kind, std::uint64_t cookie)
{
    if (static_cast<unsigned>(fd) >= size_)
        return nullptr;
    std::uint64_t head = free_.load();
    Object *object = nullptr;
    while (static_cast<std::uint32_t>(head) != none) {
        Object *first = &objects_[static_cast<std::uint32_t>(head) - 1];
        const std::uint64_t turn = (head >> 32) + 1;
        if (free_.compare_exchange_weak(head, turn << 32 | first->next)) {
            object = first;
            break;
        }
    }
    if (object == nullptr) {
        std::uint32_t fresh = fresh_.load();
        do {
            if (fresh == count_)
                return nullptr;
        } while (!fresh_.compare_exchange_weak(fresh, fresh + 1));
        object = &objects_[fresh];
    }
    object->kind = kind;
    object->cookie = cookie;
    object->body = nullptr;
    object->names = 1;
    object->users.fetch_add(1); // others may count themselves for a moment, see use()
    std::uint32_t highest = highest_.load();
    while (highest < static_cast<unsigned>(fd) &&
           !highest_.compare_exchange_weak(highest, static_cast<unsigned>(fd)))
        ;
    slots_[fd].store(object, std::memory_order_seq_cst);
    return object;
}

void Table::copy(int from, int to)
{
    if (static_cast<unsigned>(to) >= size_)
        return;
    Object *object = find(from);
    if (object == nullptr)
        return;
    std::uint32_t names = object->names.load();
    do {
        if (names == 0 || (names & ending) != 0)
            return;
    } while (!object->names.compare_exchange_weak(names, names + 1));
    std::uint32_t highest = highest_.load();
    while (highest < static_cast<unsigned>(to) &&
           !highest_.compare_exchange_weak(highest, static_cast<unsigned>(to)))
        ;
    slots_[to].store(object, std::memory_order_seq_cst);
}

Table::Taken Table::take(int fd)
{
    for (Object *object = find(fd); object != nullptr; object = find(fd))
        if (const Taken taken = take(fd, object); taken.object != nullptr)
            return taken;
    return {};
}

Table::Taken Table::take(int fd, Object *object)
{
    if (find(fd) != object)
        return {};
    for (Object *expected = object; !slots_[fd].compare_exchange_weak(expected, nullptr);)
        if (expected != object)
            return {};
    // With its last name gone it ends here, or in the done() of its last user: one of both takes
    // the mark away.
    std::uint32_t names = object->names.load();
    while (!object->names.compare_exchange_weak(names, names == 1 ? ending : names - 1))
        ;
    if (names != 1)
        return {object, false, false};
    std::uint32_t waiting = ending;
    const bool over = object->users.load(std::memory_order_seq_cst) == 0 &&
                      object->names.compare_exchange_strong(waiting, 0);
    return {object, true, over};
}

void Table::end(Object *object)
{
    const auto number = static_cast<std::uint32_t>(object - objects_) + 1;
    std::uint64_t head = free_.load();
    do
        object->next = static_cast<std::uint32_t>(head);
    while (!free_.compare_exchange_weak(head, (head & ~0xffffffffull) | number));
}

void Table::hide(int fd)
{
    if (static_cast<unsigned>(fd) < size_)
        hidden_[fd / 64].fetch_or(1ull << (fd % 64));
}

void Table::show(int fd)
{
    if (static_cast<unsigned>(fd) < size_)
        hidden_[fd / 64].fetch_and(~(1ull << (fd % 64)));
}

void Table::note_added(int fd)
{
    if (static_cast<unsigned>(fd) < size_ && !was_added(fd))
        added_[fd / 64].fetch_or(1ull << (fd % 64));
}

void Table::forget_added(int fd)
{
    if (was_added(fd))
        added_[fd / 64].fetch_and(~(1ull << (fd % 64)));
}

int Table::next_hidden(unsigned from, unsigned to) const
{
    to = size_ == 0 ? 0 : std::min(to, static_cast<unsigned>(size_ - 1));
    for (unsigned fd = from; fd <= to && fd < size_; fd++) {
        const std::uint64_t word = hidden_[fd / 64].load() >> (fd % 64);
        if ((word & 1) != 0)
            return static_cast<int>(fd);
        if (word == 0)
            fd |= 63;
    }
    return -1;
}

int Table::next(unsigned from, unsigned to) const
{
    to = std::min(to, highest_.load());
    for (unsigned fd = from; fd <= to && fd < size_; fd++)
        if (slots_[fd].load() != nullptr)
            return static_cast<int>(fd);
    return -1;
}

int Table::number_of(const Object *object) const
{
    for (int fd = next(0, ~0u); fd >= 0; fd = next(static_cast<unsigned>(fd) + 1, ~0u))
        if (find(fd) == object)
            return fd;
    return -1;
}

void Table::forked()
{
    const std::uint32_t used = fresh_.load();
    for (std::uint32_t i = 0; i < used; i++)
        objects_[i].users = objects_[i].sleepers = 0;
}

void Table::end_left()
{
    const std::uint32_t used = fresh_.load();
    for (std::uint32_t i = 0; i < used; i++) {
        std::uint32_t waiting = ending;
        if (!is_used(objects_[i]) && objects_[i].names.compare_exchange_strong(waiting, 0))
            over_(&objects_[i]);
    }
}

} // namespace ntb::socket
