// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_COMPLETION_QUEUE_HPP
#define NTB_VERBS_COMPLETION_QUEUE_HPP

#include <algorithm>
#include <cstdint>

#include "completion/pipe.hpp"
#include "memory/lazy.hpp"
#include "ntbv.h"

namespace ntb::verbs
{

/// A ring of completions, and what it reports to its channel.
class CompletionQueue
{
public:
    /// @param channel  or NULL
    bool create(std::uint32_t entries, Pipe *channel, std::uint64_t cookie);

    /// @param entries  not fewer than wait in it
    /// @retval false no memory: it is as it was
    bool resize(std::uint32_t entries);

    /// @retval false the queue has overrun, now or before: the completion is lost
    bool push(const ntbv_wc &completion, bool solicited)
    {
        ntbv_wc *to;
        if (lent_ != lent_end_) [[likely]] {
            to = lent_++;
        } else if (overrun_ || head_ - tail_ == entries_) [[unlikely]] {
            overrun_ = true;
            return false;
        } else {
            to = &ring_[head_++ & mask_];
        }
        put(completion, *to);
        if (armed_ != Armed::No) [[unlikely]]
            report(solicited || completion.status != NTBV_SUCCESS);
        return true;
    }
    /// Of an empty queue: what is pushed goes there first, until give_back(). So a completion that
    /// was just put together is not copied, which has to wait until the stores of its fields are
    /// done.
    void lend(int n, ntbv_wc *completions)
    {
        lent_ = completions;
        lent_end_ = completions + (overrun_ ? 0 : std::max(n, 0));
    }
    /// @return completions that went there
    int give_back(const ntbv_wc *completions)
    {
        const auto given = static_cast<int>(lent_ - completions);
        lent_ = lent_end_ = nullptr;
        return given;
    }
    /// @return completions taken
    int take(int n, ntbv_wc *completions)
    {
        std::uint32_t tail = tail_;
        const std::uint32_t there = head_ - tail;
        const auto taken = std::min(there, static_cast<std::uint32_t>(std::max(n, 0)));
        for (std::uint32_t i = 0; i < taken; ++i)
            completions[i] = ring_[tail++ & mask_];
        tail_ = tail;
        return static_cast<int>(taken);
    }
    bool empty() const { return head_ == tail_; }
    std::uint32_t count() const { return head_ - tail_; }
    bool overrun() const { return overrun_; }
    /// One event for the next completion; without `solicited_only` for any. A wider wish holds
    /// until there was an event.
    void arm(bool solicited_only);
    /// Writes the event that the channel had no room for. @retval false it has none yet
    bool notify();
    bool owes_event() const { return owes_event_; }
    /// Takes the completions of a queue pair out.
    void forget(std::uint32_t qpn);
    std::uint64_t cookie() const { return cookie_; }
    bool has_channel() const { return channel_ != nullptr; }

private:
    enum class Armed : std::uint8_t { No, Solicited, Any };

    void report(bool counts);
    // Field by field, so that it is put together there: as a whole it would be put together
    // elsewhere, and loads of several fields at a time wait until the stores of all of them are
    // done.
    static void put(const ntbv_wc &from, ntbv_wc &to)
    {
        to.id = from.id;
        to.status = from.status;
        to.opcode = from.opcode;
        to.vendor_error = from.vendor_error;
        to.bytes = from.bytes;
        to.imm = from.imm;
        to.qpn = from.qpn;
        to.source_qpn = from.source_qpn;
        to.flags = from.flags;
        to.pkey_index = from.pkey_index;
        to.source_lid = from.source_lid;
        to.service_level = from.service_level;
        to.path_bits = from.path_bits;
    }

    Lazy<ntbv_wc> ring_;
    ntbv_wc *lent_ = nullptr, *lent_end_ = nullptr;
    std::uint32_t mask_ = 0;
    std::uint32_t entries_ = 0;
    std::uint32_t head_ = 0, tail_ = 0;
    Armed armed_ = Armed::No;
    bool overrun_ = false;
    bool owes_event_ = false;
    Pipe *channel_ = nullptr;
    std::uint64_t cookie_ = 0;
};

} // namespace ntb::verbs

#endif
