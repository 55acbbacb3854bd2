// SPDX-License-Identifier: BSD-3-Clause
#include "results/flows.hpp"

#include <algorithm>

namespace pktgen
{

namespace
{

app::Flow flow_of(const Account &account, const char *direction, const Received &received)
{
    app::Flow flow;
    flow.name = account.device.empty() ? direction : account.device;
    flow.queue = account.queue;
    flow.cpu = account.cpu;
    flow.messages = received.counted_messages;
    flow.bytes = received.counted_bytes;
    flow.seconds = static_cast<double>(received.counted_ns) / 1e9;
    return flow;
}

class Books
{
public:
    Books(const Point &point, bool replay, app::ResultPoint &result)
        : point_(point), summed_(point.pattern == Pattern::counter && !replay), result_(result)
    {
    }

    /// What was sent at one end, and came at the other.
    void messages(const Sent &sent, const Received &received)
    {
        note(received);
        const uint64_t missing = missing_of(sent.messages, received.messages);
        const bool other_bytes = missing == 0 && sent.bytes != received.bytes;
        const bool other_sum = missing == 0 && summed_ && sent.sum != received.sum;
        if (other_bytes || other_sum || received.messages > sent.messages)
            wrong();
    }

    /// What was posted at one end. @param word  that atomic operations have made at the other
    void operations(const Sent &sent, const Received &completed, const Received *far)
    {
        note(completed);
        const bool read = point_.operation == Operation::read && summed_ && !point_.verify;
        if (missing_of(sent.messages, completed.messages) == 0 && read && sent.sum != completed.sum)
            wrong();
        if (far == nullptr)
            return;
        note(*far);
        if (far_end_counts(point_))
            missing_of(sent.messages, far->messages);
        if (point_.operation == Operation::compare_swap && far->sum != sent.messages)
            wrong();
    }

    /// Of one word to which all queues added. @param added  what they did
    void word(uint64_t added, uint64_t value)
    {
        if (added != value)
            wrong();
    }

private:
    void note(const Received &received)
    {
        result_.corrupt += received.corrupt;
        result_.out_of_order += received.out_of_order;
    }
    uint64_t missing_of(uint64_t sent, uint64_t come)
    {
        const uint64_t missing = sent - std::min(sent, come);
        result_.lost += missing;
        return missing;
    }
    /// A sum does not say how many.
    void wrong() { result_.corrupt = std::max<uint64_t>(result_.corrupt, 1); }

    const Point &point_;
    const bool summed_;
    app::ResultPoint &result_;
};

void add_messages(const Point &point, const Account &account, Books &books,
                  app::ResultPoint &result)
{
    const Work &here = *account.here;
    const Received received = here.received();
    if (point.direction == Direction::echo) {
        result.flows.push_back(flow_of(account, "echo", received));
        result.lost += here.unanswered();
        if (here.unanswered() == 0)
            books.messages(here.sent(), received);
    }
    if (account.there != nullptr &&
        (point.direction == Direction::out || point.direction == Direction::both)) {
        result.flows.push_back(flow_of(account, "out", account.there->received));
        books.messages(here.sent(), account.there->received);
    }
    if (point.direction == Direction::in || point.direction == Direction::both) {
        result.flows.push_back(flow_of(account, "in", received));
        if (account.there != nullptr)
            books.messages(account.there->sent, received);
    }
}

/// The requester counts, but where each is reported to the far end.
void add_operations(const Point &point, const Account &account, Books &books,
                    app::ResultPoint &result)
{
    const Work &here = *account.here;
    const bool there_times = far_end_times(point.operation) && point.direction != Direction::echo;
    if (point.direction != Direction::in) {
        const Received completed = here.completed();
        const Received *far = account.there != nullptr ? &account.there->received : nullptr;
        const char *direction = point.direction == Direction::echo ? "echo" : "out";
        if (!there_times || far != nullptr)
            result.flows.push_back(flow_of(account, direction, there_times ? *far : completed));
        books.operations(here.sent(), completed, far);
    }
    if ((point.direction == Direction::in || point.direction == Direction::both) &&
        account.there != nullptr) {
        const Received received = here.received();
        result.flows.push_back(
            flow_of(account, "in", there_times ? received : account.there->completed));
        books.operations(account.there->sent, account.there->completed, &received);
    }
}

/// All queues of a peer add to one word, at each end that exposes memory.
void add_words(const Point &point, std::span<const Account> accounts, Books &books)
{
    for (size_t first = 0; first + point.queues <= accounts.size(); first += point.queues) {
        uint64_t added_there = 0, added_here = 0;
        bool reported = true;
        for (const Account &account : accounts.subspan(first, point.queues)) {
            added_there += account.here->sent().messages;
            reported = reported && account.there != nullptr;
            added_here += account.there != nullptr ? account.there->sent.messages : 0;
        }
        if (!reported)
            continue;
        if (point.direction != Direction::in)
            books.word(added_there, accounts[first].there->received.sum);
        if (point.direction == Direction::in || point.direction == Direction::both)
            books.word(added_here, accounts[first].here->received().sum);
    }
}

} // namespace

void add_flows(const Point &point, bool replay, std::span<const Account> accounts,
               app::ResultPoint &result)
{
    Books books(point, replay, result);
    for (const Account &account : accounts) {
        if (is_one_sided(point.operation))
            add_operations(point, account, books, result);
        else
            add_messages(point, account, books, result);
        const ControlMessage *there = account.there;
        result.captured +=
            account.here->received().captured + (there != nullptr ? there->received.captured : 0);
        result.tx_full += account.here->tx_full();
        result.served = std::max(result.served, there != nullptr ? there->served : 0);
    }
    if (point.operation == Operation::fetch_add)
        add_words(point, accounts, books);
}

} // namespace pktgen
