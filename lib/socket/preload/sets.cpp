// SPDX-License-Identifier: BSD-3-Clause
#include "preload/sets.hpp"

#include "kernel/lock.hpp"
#include "preload/state.hpp"
#include "readiness/kernel_set.hpp"

#include <atomic>
#include <new>

namespace ntb::socket::preload
{

namespace
{
constexpr unsigned most_sets = 4096;

Lock sets_lock;
Set *sets[most_sets];
bool nested[most_sets]; // a member of another set
std::atomic<bool> has_nested = false;
unsigned set_count; // slots that were ever used
} // namespace

int set_born(int fd, Attendant *attendant)
{
    born(fd);
    if (fd < 0 || state.figures == nullptr || !is_own_process())
        return fd;
    KeepErrno keep;
    const Locked locked(sets_lock);
    unsigned slot = 0;
    while (slot < set_count && sets[slot] != nullptr)
        slot++;
    if (slot == most_sets)
        return fd;
    Set *set = Set::create(fd, attendant);
    if (set == nullptr)
        return fd;
    Object *object = state.table.add(fd, Object::Kind::Set, 0);
    if (object == nullptr) {
        set->destroy();
        return fd;
    }
    object->body = set;
    sets[slot] = set;
    state.has_sets = true;
    if (slot == set_count)
        set_count++;
    state.table.done(object);
    return fd;
}

void set_ended(Set *set)
{
    const Locked locked(sets_lock);
    for (unsigned i = 0; i < set_count; i++)
        if (sets[i] == set) {
            sets[i] = nullptr;
            nested[i] = false;
        }
    set->destroy();
}

bool sets_can_learn()
{
    const Locked locked(sets_lock);
    for (unsigned i = 0; i < set_count; i++)
        if (sets[i] != nullptr)
            return sets[i]->can_learn(); // what one may not the others may not
    return true;
}

bool upgrade_in_sets(const Object *object, int fd, Source *source)
{
    bool is_known = true;
    const Locked locked(sets_lock);
    for (int one = state.table.next(0, ~0u); one >= 0;
         one = state.table.next(static_cast<unsigned>(one) + 1, ~0u)) {
        if (one != fd && state.table.find(one) != object)
            continue;
        const bool unknown = state.table.was_added(one);
        for (unsigned i = 0; i < set_count; i++)
            if (sets[i] != nullptr)
                is_known &= sets[i]->upgrade(one, source, unknown);
    }
    return is_known;
}

void hide_wake()
{
    static std::atomic<int> hidden = -1;
    const int now = ready_descriptor();
    if (now != hidden.load(std::memory_order_relaxed)) {
        state.table.hide(now);
        hidden = now;
    }
}

void nest(const Set *inner)
{
    const Locked locked(sets_lock);
    for (unsigned i = 0; i < set_count; i++)
        if (sets[i] == inner)
            nested[i] = true;
    has_nested = true;
}

void settle_nested()
{
    if (!has_nested.load(std::memory_order_relaxed)) [[likely]]
        return;
    const Locked locked(sets_lock);
    for (unsigned i = 0; i < set_count; i++)
        if (nested[i] && !sets[i]->is_inherited())
            sets[i]->settle();
}

void left_in_sets(int fd, const Source *source)
{
    if (set_count == 0)
        return;
    const Locked locked(sets_lock);
    for (unsigned i = 0; i < set_count; i++)
        if (sets[i] != nullptr)
            sets[i]->left(fd, source);
}

void closed_in_sets(int fd, Source *source, bool last)
{
    if (set_count == 0 || !Links::any())
        return;
    const Locked locked(sets_lock);
    for (unsigned i = 0; i < set_count; i++)
        if (sets[i] != nullptr)
            sets[i]->closed(fd, source, last);
}

void sets_before_fork()
{
    sets_lock.take();
    for (unsigned i = 0; i < set_count; i++)
        if (sets[i] != nullptr)
            sets[i]->before_fork();
}

void sets_after_fork_in_parent(bool has_child)
{
    for (unsigned i = 0; i < set_count; i++)
        if (sets[i] != nullptr)
            sets[i]->after_fork_in_parent(has_child);
    sets_lock.give();
}

void sets_after_fork_in_child()
{
    new (&sets_lock) Lock;
    for (unsigned i = 0; i < set_count; i++)
        if (sets[i] != nullptr)
            sets[i]->after_fork_in_child();
}

} // namespace ntb::socket::preload
