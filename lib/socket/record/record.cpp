// SPDX-License-Identifier: BSD-3-Clause
#include "record/record.hpp"

#include <cerrno>

#include "kernel/system.hpp"

namespace ntb::socket
{

using ntbc::load;
using ntbc::store;

namespace
{
bool is_gone(std::int32_t pid)
{
    return pid == 0 || kernel::call(SYS_kill, pid, 0) == -ESRCH;
}
} // namespace

void Holders::add(std::int32_t pid)
{
    for (std::int32_t &one : pids_)
        if (load(one) == pid)
            return;
    for (std::int32_t &one : pids_) {
        std::int32_t none = load(one);
        if (is_gone(none) && std::atomic_ref(one).compare_exchange_strong(none, pid))
            return;
    }
    expect();
}

// In this order (rule H2): who has read the new number finds the child expected, or already in.
void Holders::expect()
{
    std::atomic_ref(expected_).fetch_add(1);
    std::atomic_ref(births_).fetch_add(1);
}

bool Holders::is_alone(std::int32_t pid, bool asks) const
{
    const auto now = [](const auto &word) { return load(word, std::memory_order_seq_cst); };
    const std::uint32_t births = now(births_);
    if (now(expected_) != 0)
        return false;
    for (const std::int32_t &one : pids_) {
        const std::int32_t holder = now(one);
        if (holder != pid && !(asks ? is_gone(holder) : holder == 0))
            return false;
    }
    return now(births_) == births;
}

bool Holders::remove(std::int32_t pid)
{
    const bool alone = is_alone(pid, true);
    for (std::int32_t &one : pids_) {
        std::int32_t holder = load(one);
        if (holder == pid || is_gone(holder))
            std::atomic_ref(one).compare_exchange_strong(holder, 0);
    }
    return alone;
}

bool say_end(Record &record, Page &page, unsigned end, std::uint32_t generation, bool alone)
{
    SendHalf &out = record.out;
    if (!alone && !out.lock.try_take_as_daemon())
        return false;
    Sender sender = out.sender.now();
    // A grant that was not looked at any more comes before (rule D3).
    const ReceiverAsks &asks = page.direction[end].receiver_asks;
    const std::uint32_t granted = load(asks.generation);
    if (granted == sender.wanted() && granted != sender.words().generation)
        sender.granted(granted, load(asks.ring_bytes));
    const Sender::Actions actions =
        sender.fin_seen(generation, alone && has_unread(record, page, end));
    if (actions.store) {
        out.sender.put(sender);
        store_words(page.direction[end].sender, sender.words());
    }
    if (!alone)
        out.lock.give_as_daemon();
    return true;
}

bool has_unread(const Record &record, const Page &page, unsigned end)
{
    const Receiver receiver = record.in.receiver.now();
    const SenderWords words = load_words(page.direction[1 - end].sender);
    return receiver.state() == Receiver::State::Seen &&
           words.generation == receiver.words().generation && words.head > receiver.taken();
}

void say_gone(const Record &record, Page &page, unsigned end)
{
    Lines &lines = page.direction[1 - end];
    store(lines.receiver.taken, record.in.receiver.now().taken());
    std::atomic_ref(lines.receiver_asks.gone).exchange(1, std::memory_order_seq_cst);
}

Figures figures_of(const Record &record)
{
    return {static_cast<std::uint32_t>(record.out.sender.now().state()),
            static_cast<std::uint32_t>(record.in.receiver.now().state()),
            load(record.out.by_ring),
            load(record.out.by_kernel),
            load(record.in.by_ring),
            load(record.in.by_kernel)};
}

} // namespace ntb::socket
