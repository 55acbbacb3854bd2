// SPDX-License-Identifier: BSD-3-Clause
#include "record/record.hpp"

#include <cerrno>

#include <sys/mman.h>

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

// The record is a client's: negative numbers are of groups.
bool Holders::have_died(std::int32_t but) const
{
    const auto now = [](const auto &word) { return load(word, std::memory_order_seq_cst); };
    const std::uint32_t births = now(births_);
    if (now(expected_) != 0)
        return false;
    std::int32_t holders[most];
    int n = 0;
    for (const std::int32_t &one : pids_) {
        const std::int32_t holder = now(one);
        if (holder == but || holder < 0)
            return false;
        if (holder != 0)
            holders[n++] = holder;
    }
    for (int i = 0; i < n; i++)
        if (!is_gone(holders[i]))
            return false;
    return n > 0 && now(births_) == births;
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

namespace
{
// A grant that was not looked at any more comes before what is to be said (rule D3).
Sender::Actions take_grant(Sender &sender, const ReceiverAsks &asks)
{
    const std::uint32_t granted = load(asks.generation);
    if (granted != sender.wanted() || granted == sender.words().generation)
        return {};
    return sender.granted(granted, load(asks.ring_bytes));
}
} // namespace

bool say_end(Record &record, Page &page, unsigned end, std::uint32_t generation, bool alone)
{
    SendHalf &out = record.out;
    if (!alone && !out.lock.try_take_as_daemon())
        return false;
    Sender sender = out.sender.now();
    const bool returned = take_grant(sender, page.direction[end].receiver_asks).store;
    const Sender::Actions actions =
        sender.fin_seen(generation, alone && has_unread(record, page, end));
    if (returned || actions.store) {
        out.sender.put(sender);
        store_words(page.direction[end].sender, sender.words());
    }
    if (!alone)
        out.lock.give_as_daemon();
    return true;
}

bool is_asked(const Record &record, const Page &page, unsigned end)
{
    const ReceiverAsks &asks = page.direction[end].receiver_asks;
    Sender sender = record.out.sender.now();
    // One that was granted a ring and makes no call is asked as well.
    const bool returned = take_grant(sender, asks).store;
    const Sender::State state = sender.state();
    return (returned || state == Sender::State::Ring || state == Sender::State::Granted) &&
           load(asks.ask) != 0;
}

bool answer_ask(Record &record, Page &page, unsigned end)
{
    SendHalf &out = record.out;
    if (!out.lock.try_take_as_daemon())
        return false;
    Sender sender = out.sender.now();
    const bool returned = take_grant(sender, page.direction[end].receiver_asks).store;
    Sender::Actions actions;
    sender.forbid_rings();
    const bool back = sender.go_back(load_words(page.direction[end].receiver_asks), actions);
    out.sender.put(sender);
    if (returned || actions.store)
        store_words(page.direction[end].sender, sender.words());
    out.lock.give_as_daemon();
    return back;
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

namespace
{
constexpr std::uint64_t system_page = 4096;

void remove(const Ring &ring, std::uint64_t begin, std::uint64_t end)
{
    if (begin < end)
        kernel::call(SYS_madvise, ring.data + begin, end - begin, MADV_REMOVE);
}

// The pages of a ring that lie in its free part whole. Positions count from the switch.
void empty(const Ring &ring, std::uint64_t head, std::uint64_t free)
{
    std::uint64_t from = head % ring.bytes, to = from + free;
    if (free == ring.bytes) {
        from = 0;
        to = ring.bytes;
    }
    from = (from + system_page - 1) / system_page * system_page;
    to = to / system_page * system_page;
    if (to <= from)
        return;
    const std::uint64_t size = ring.bytes;
    if (from >= size)
        remove(ring, from - size, to - size);
    else {
        remove(ring, from, to < size ? to : size);
        if (to > size)
            remove(ring, 0, to - size);
    }
}

} // namespace

void empty_free(const Ring &whole, const SenderWords &words, std::uint64_t taken)
{
    const SenderWords::Place first = words.place_of(taken, whole.bytes);
    const Ring ring = {whole.data, static_cast<std::uint32_t>(first.used)};
    // What lies in the ring that the first byte is in, and behind it what lies there already.
    const bool both = words.wide != 0 && taken < words.wide && words.wide <= words.head;
    const std::uint64_t end = both ? words.wide : words.head;
    if (end - taken <= ring.bytes)
        empty(ring, first.position + (end - taken), ring.bytes - (end - taken));
    const std::uint64_t behind = both ? words.head - words.wide : 0;
    remove(whole, (ring.bytes + behind + system_page - 1) / system_page * system_page, whole.bytes);
}

namespace
{
// `shown` stays: no bell rings here, and the receiver rings when it is a quarter of the ring beyond
// that.
bool say_taken(ReceiveHalf &in, Lines &lines)
{
    if (!in.lock.try_take_as_daemon(true))
        return false;
    const Receiver receiver = in.receiver.now();
    if (receiver.state() == Receiver::State::Seen &&
        load(lines.receiver_asks.generation) == receiver.words().generation)
        store(lines.receiver.taken, receiver.taken());
    in.lock.give_as_daemon();
    return true;
}
} // namespace

// Where a ring is written its lock is held, so none of what is stored goes with the pages. A page
// that is free for the sender by the receiver's word has no byte that is read any more.
bool rest(Record &record, Page &page, unsigned end, std::uint32_t ring_bytes)
{
    SendHalf &out = record.out;
    const bool said = say_taken(record.in, page.direction[1 - end]);
    if (!out.lock.try_take_as_daemon(true))
        return false;
    const Sender sender = out.sender.now();
    const SenderWords words = sender.words();
    std::uint64_t unread = 0;
    if (sender.state() == Sender::State::Ring) {
        const std::uint64_t taken = load(page.direction[end].receiver.taken);
        const std::uint64_t from = taken > words.start ? taken : words.start;
        unread = words.head - from;
        // The record is the client's.
        const bool is_size = words.narrow <= ring_bytes && (words.narrow & (words.narrow - 1)) == 0;
        if (is_size && from <= words.head && words.head <= words.end_of_room(from, ring_bytes))
            empty_free(ring_of(&page, ring_bytes, end), words, from);
    }
    out.lock.give_as_daemon();
    return said && unread == 0;
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
