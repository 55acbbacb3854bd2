// SPDX-License-Identifier: BSD-3-Clause
// What lies at the tail of the own ring: a run of messages of one kind, found and checked before
// any of them is taken. The peer wrote it, so each word is copied once and bounded in the copy.
#ifndef PLX_QUEUE_RUN_HPP
#define PLX_QUEUE_RUN_HPP

#include <algorithm>

#include "queue/mem_policy.hpp"
#include "queue/state.hpp"

namespace plx::queue::PLX_VARIANT
{

/// Messages looked at before their mbufs are fetched in one go.
inline constexpr unsigned run_max = 64;
/// Behind a burst of so many, when it is full, it is worth a look whether there is more.
inline constexpr unsigned backlog_min = 16;

/// What a run consists of: inline messages of one or two lines, inline messages of any length,
/// long messages.
enum class RunKind { few_lines, many_lines, long_messages };

/// Valid messages, one after the other, from the tail on. The header words are copies: checked once
/// here, used from here, never looked at again where the peer could change them.
struct Run {
    unsigned messages;
    unsigned alike; ///< inline ones: so many have the first one's word; 0: not looked for
    RunKind kind;
    bool more;               ///< inline ones: as many as asked for, and more have come behind them
    uint32_t lines;          ///< inline ones: what they take together
    uint64_t words[run_max]; ///< of those that are alike only the first one's
};

/// other: what comes next is not of the flow that is looked for.
enum class PollResult { valid, not_yet, bad, other };

/// What is looked for: any message, or the short ones of one flow. `takes` looks at a header line
/// and its word, `takes_next` at one whose word is that of a message that was taken.
struct AnyMessage {
    static constexpr bool is_flow = false;
    static bool takes(const std::byte *, uint64_t, uint32_t) { return true; }
    static bool takes_next(const std::byte *) { return true; }
};
struct OfFlow {
    static constexpr bool is_flow = true;
    uint32_t low, flags, longest;
    [[gnu::always_inline]] explicit OfFlow(const RxFlow &flow)
        : low(flow.low), flags(flow.flags), longest(flow.longest)
    {
    }
    [[gnu::always_inline]] bool takes(const std::byte *line, uint64_t word, uint32_t length) const
    {
        return length <= longest && wire::word_flags(word) == flags && takes_next(line);
    }
    [[gnu::always_inline]] bool takes_next(const std::byte *line) const
    {
        uint32_t half;
        __builtin_memcpy(&half, line + wire::meta_offset, sizeof(half));
        return half == low;
    }
};

/// Length in a header word of kind inline_message; larger than any length for other kinds.
[[gnu::always_inline]] inline uint32_t inline_length(uint64_t word)
{
    constexpr uint32_t kind = static_cast<uint32_t>(wire::Kind::inline_message) << 24;
    return (static_cast<uint32_t>(word >> 32) & 0x3ffffff) - kind;
}

/// Inline messages are handled in two classes: those of one or two lines, which are spared a loop,
/// and all. None goes beyond the end of the ring.
enum class Lines { few, many };
/// Lines of messages of a class that are looked at and copied together where they are alike.
template <Lines L>
inline constexpr uint32_t alike_least = L == Lines::few ? 1 : 3;
template <Lines L>
inline constexpr uint32_t alike_most = L == Lines::few ? 2 : alike_lines_max;

/// Looks at the lines behind a header. How many there are is found by branches: were the next
/// header's address computed from this one's word, the two misses would not overlap.
template <MemPolicy Mem, Lines L>
class Behind
{
    uint32_t last_length_ = 0, last_lines_ = 1;

public:
    /// @return what comes behind the message; NULL where a line is not what it should be
    [[gnu::always_inline]] const std::byte *operator()(const std::byte *line, const std::byte *end,
                                                       uint32_t length, uint32_t tag)
    {
        const std::byte *next = line + wire::line_bytes;
        if constexpr (L == Lines::few) {
            if (length <= wire::head_payload_bytes)
                return next;
            return next != end && Mem::load(next) == tag ? next + wire::line_bytes : nullptr;
        } else {
            if (length != last_length_) [[unlikely]] {
                last_length_ = length;
                last_lines_ = wire::inline_lines(length);
            }
            if (static_cast<size_t>(end - line) < last_lines_ * wire::line_bytes)
                return nullptr;
            uint64_t odd = 0;
            for (uint32_t i = 1; i < last_lines_; i++, next += wire::line_bytes)
                odd |= Mem::load(next) ^ tag;
            return odd == 0 ? next : nullptr;
        }
    }
};

/// Whether the words of the Lines - 1 lines behind @p line are @p rest.
template <MemPolicy Mem, uint32_t Lines>
[[gnu::always_inline]] inline bool rest_is(const std::byte *line, uint64_t rest)
{
    if constexpr (Lines > 1) {
        line += wire::line_bytes;
        return Mem::is(line, rest) && rest_is<Mem, Lines - 1>(line, rest);
    }
    return true;
}

/// Counts the messages that have the word of the first one, at @p first, which is checked and has
/// Lines lines: the others need no check but that. @param most  of them lie before the end of the
/// ring, and are wanted; at least 1
template <MemPolicy Mem, uint32_t Lines, class Wanted>
[[gnu::always_inline]] inline unsigned count_alike(const std::byte *first, unsigned most,
                                                   uint64_t word, Wanted wanted)
{
    constexpr size_t each = Lines * wire::line_bytes;
    const uint64_t rest = wire::continuation_word(wire::word_tag(word));
    const std::byte *line = first + each, *const end = first + most * each;
    while (line != end && Mem::is(line, word) && wanted.takes_next(line) &&
           rest_is<Mem, Lines>(line, rest))
        line += each;
    return static_cast<unsigned>(static_cast<size_t>(line - first) / each);
}

/// How many messages are alike from the first one on, which has @p lines lines. 0: so many are not
/// looked at together. (Fewer than the class has come where a line has arrived since it was looked
/// for in the other one.)
template <MemPolicy Mem, Lines L, class Wanted>
[[gnu::always_inline]] inline unsigned find_alike(const std::byte *first, uint32_t lines,
                                                  unsigned n, uint32_t left, uint64_t word,
                                                  Wanted wanted)
{
    if (lines < alike_least<L> || lines > alike_most<L>)
        return 0;
    return with_lines<alike_least<L>, alike_most<L>>(lines, [=]<uint32_t Each>() {
        return count_alike<Mem, Each>(first, std::min(n, left / Each), word, wanted);
    });
}

/// The inline messages at the tail, up to the end of the ring. Reading ahead of the copies lets the
/// misses of the lines overlap. Everything else, and what is wrong, is left to find_other().
template <MemPolicy Mem, Lines L, class Wanted>
[[gnu::always_inline]] inline PollResult find_inline(const Rx &q, unsigned n, Run &run,
                                                     Wanted wanted)
{
    const RingPlace ring = q.ring;
    const uint32_t tag = ring.tag(q.tail), left = ring.left(q.tail);
    const uint32_t most = L == Lines::few ? q.few_lines_max : q.many_lines_max;
    const std::byte *const first = ring.line(q.tail), *line = first;
    const std::byte *const end = line + left * wire::line_bytes;
    Behind<Mem, L> behind;
    unsigned found = 0;
    PollResult result = PollResult::valid;
    while (found < n && line != end) {
        const uint64_t word = Mem::load(line);
        if (wire::word_tag(word) != tag) {
            result = PollResult::not_yet;
            break;
        }
        const uint32_t length = inline_length(word);
        const std::byte *next = length <= most ? behind(line, end, length, tag) : nullptr;
        if (next == nullptr)
            break;
        if (!wanted.takes(line, word, length)) {
            result = PollResult::other;
            break;
        }
        if (found == 0) {
            const auto bytes = static_cast<size_t>(next - line);
            run.alike = find_alike<Mem, L>(line, static_cast<uint32_t>(bytes / wire::line_bytes), n,
                                           left, word, wanted);
            if (run.alike > 0) {
                run.words[0] = word;
                found = run.alike;
                line += found * bytes;
                continue;
            }
        }
        run.words[found++] = word;
        line = next;
    }
    run.kind = L == Lines::few ? RunKind::few_lines : RunKind::many_lines;
    run.messages = found;
    run.lines = static_cast<uint32_t>(static_cast<size_t>(line - first) / wire::line_bytes);
    run.more = L == Lines::many && found == n && n >= backlog_min && 2 * run.lines <= left &&
               wire::word_tag(Mem::load(line)) == tag;
    return result;
}

/// Why find_inline() took no inline message whose header says @p length.
template <MemPolicy Mem>
[[gnu::always_inline]] inline PollResult check_inline(const Rx &q, uint32_t length)
{
    if (length > q.many_lines_max)
        return PollResult::bad;
    const uint32_t lines = wire::inline_lines(length), tag = q.ring.tag(q.tail);
    if (lines > q.ring.left(q.tail))
        return PollResult::bad;
    for (uint32_t i = 1; i < lines; i++) {
        const uint64_t w = Mem::load(q.ring.line(q.tail + i));
        if (wire::word_tag(w) != tag)
            return PollResult::not_yet;
        if (w >> 32 != 0)
            return PollResult::bad;
    }
    return PollResult::not_yet; // it has arrived since
}

/// Skips a pad line: only at the end of the ring, and empty.
[[gnu::always_inline]] inline PollResult skip_pad(Rx &q, uint64_t word)
{
    if (q.ring.left(q.tail) > wire::pad_lines_max ||
        word != wire::head_word(wire::word_tag(word), 0, wire::Kind::pad, 0))
        return PollResult::bad;
    q.tail++;
    return PollResult::valid;
}

/// Receive buffers of a long message whose header says @p length. @return 0: it may not be so long,
/// or there are not so many
[[gnu::always_inline]] inline uint32_t buffers_of_long(const Rx &q, uint32_t length,
                                                       uint32_t available)
{
    const uint32_t need = q.per_buffer.ceil(length);
    return length <= q.s.max_message && need <= available ? need : 0;
}

/// Finds long messages at the tail, or why there is nothing to take. valid without a message: a pad
/// line was skipped, search again. (A lap has few of them, so that ends.)
template <MemPolicy Mem>
[[gnu::noinline]] PollResult find_other(Rx &q, unsigned n, Run &run)
{
    uint32_t buffers = q.buffers_available();
    run.kind = RunKind::long_messages;
    for (unsigned found = 0; found < n; run.messages = ++found) {
        const uint64_t position = q.tail + found, word = Mem::load(q.ring.line(position));
        if (wire::word_tag(word) != q.ring.tag(position))
            return PollResult::not_yet;
        const auto kind = static_cast<wire::Kind>(wire::word_kind(word));
        const uint32_t length = wire::word_length(word);
        if (kind != wire::Kind::long_message) {
            if (found > 0)
                return PollResult::valid;
            if (kind == wire::Kind::inline_message)
                return check_inline<Mem>(q, length);
            return kind == wire::Kind::pad ? skip_pad(q, word) : PollResult::bad;
        }
        const uint32_t need = buffers_of_long(q, length, buffers);
        if (need == 0) [[unlikely]]
            return PollResult::bad;
        buffers -= need;
        run.words[found] = word;
    }
    return PollResult::valid;
}

/// Skips a pad line between messages of a flow. All else that lies there, and what is wrong, is
/// left to find_other().
template <MemPolicy Mem>
[[gnu::noinline]] PollResult find_pad(Rx &q)
{
    const uint64_t word = Mem::load(q.ring.line(q.tail));
    const bool skipped = wire::word_tag(word) == q.ring.tag(q.tail) &&
                         wire::word_kind(word) == static_cast<unsigned>(wire::Kind::pad) &&
                         skip_pad(q, word) == PollResult::valid;
    return skipped ? PollResult::valid : PollResult::other;
}

template <MemPolicy Mem, class Wanted>
[[gnu::always_inline]] inline PollResult find_run(Rx &q, unsigned n, Run &run, Wanted wanted)
{
    PollResult result = find_inline<Mem, Lines::few>(q, n, run, wanted);
    if (run.messages > 0 || result != PollResult::valid)
        return result;
    result = find_inline<Mem, Lines::many>(q, n, run, wanted);
    if (run.messages > 0)
        return result;
    if constexpr (Wanted::is_flow)
        return find_pad<Mem>(q);
    else
        return find_other<Mem>(q, n, run);
}

} // namespace plx::queue::PLX_VARIANT

#endif
