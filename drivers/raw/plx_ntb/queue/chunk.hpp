// SPDX-License-Identifier: BSD-3-Clause
// Lines of the peer's ring that are stored and published together: one class of chunk per store
// order.
#ifndef PLX_QUEUE_CHUNK_HPP
#define PLX_QUEUE_CHUNK_HPP

#include "queue/mem_policy.hpp"
#include "queue/state.hpp"

namespace plx::queue::PLX_VARIANT
{

/// Most lines that are published together.
inline constexpr uint32_t chunk_lines = 64;
/// How many lines ahead of the stores lines are prefetched for writing, so that requests overlap.
inline constexpr uint32_t own_ahead = 24;
/// No message takes more lines than this, so a chunk always holds at least one.
static_assert(wire::inline_lines(wire::inline_bytes_max) <= chunk_lines);

/// Where the next line of a chunk goes.
template <MemPolicy Mem>
class Cursor
{
    std::byte *line_;
    const ptrdiff_t ahead_;
    const uint32_t tag_;

public:
    [[gnu::always_inline]] Cursor(std::byte *line, ptrdiff_t ahead, uint32_t tag)
        : line_(line), ahead_(ahead), tag_(tag)
    {
    }
    [[gnu::always_inline]] uint32_t tag() const { return tag_; }
    [[gnu::always_inline]] std::byte *take()
    {
        Mem::own(line_ + ahead_);
        std::byte *line = line_;
        line_ += wire::line_bytes;
        return line;
    }
};

/// Where the lines of a chunk lie. They are contiguous and carry one tag: a chunk does not pass the
/// end of the ring.
///
/// The caller counts a chunk's lines in a register: the chunk's address escapes the loop, so a
/// counter in it would go through memory for each message.
template <MemPolicy Mem>
class ChunkPlace
{
    std::byte *const first_;
    const ptrdiff_t ahead_; ///< to the lines to be prefetched, all inside the ring
    const uint32_t tag_;
    const uint32_t left_;
    bool past_ = false; ///< bytes that it publishes went past the caches

    [[gnu::always_inline]] static std::byte *lines_ahead(const RingPlace &ring, uint64_t first)
    {
        const uint64_t ahead = first + own_ahead;
        return ring.left(ahead) >= chunk_lines ? ring.line(ahead) : ring.lines;
    }

public:
    /// A short chunk ends before own_ahead takes effect: its first lines are prefetched here.
    [[gnu::always_inline]] ChunkPlace(const RingPlace &ring, uint64_t first)
        : first_(ring.line(first)), ahead_(lines_ahead(ring, first) - first_),
          tag_(ring.tag(first)), left_(ring.left(first))
    {
        Mem::own(first_);
        Mem::own(ring.line(first + 1));
    }
    /// Lines from line @p i to the end of the ring.
    [[gnu::always_inline]] uint32_t left(uint32_t i) const { return left_ - i; }
    [[gnu::always_inline]] Cursor<Mem> at(uint32_t i) const { return {line(i), ahead_, tag_}; }
    [[gnu::always_inline]] std::byte *line(uint32_t i) const
    {
        return first_ + i * wire::line_bytes;
    }
    /// To be called where bytes of the chunk's messages were stored by Mem::non_temporal().
    [[gnu::always_inline]] void add_past() { past_ = true; }

protected:
    /// One fence for all messages of the chunk: it waits until their bytes have left this CPU.
    [[gnu::always_inline]] void settle_past() const
    {
        if (past_) [[unlikely]]
            Mem::non_temporal_fence();
    }
};

/// The lines of one chunk, from their bodies to their words.
///   add_head     line @p i, the next one, is a header and begins with @p word
///   add_full_head
///                the same, full of payload; not the first line of the chunk
///   add_rest     line @p i, the next one, holds bytes of the message before
///   add_buffers  bytes went into receive buffers, which the chunk publishes too
///   publish      the first line last: when the reader finds it, it finds them all
template <MemPolicy Mem, Order = Mem::order>
class Chunk;

/// The reader polls the first line of the chunk and reads no other before that one is valid. If its
/// body were stored early, the reader would take the cache line away before its word is stored, and
/// the word's store would wait for the line. So the first line is assembled here and stored last,
/// in one piece; its word releases the whole chunk. The other lines are stored at once, words
/// included.
template <MemPolicy Mem>
class Chunk<Mem, Order::release> : public ChunkPlace<Mem>
{
    alignas(64) std::byte first_line_[wire::line_bytes];

public:
    using ChunkPlace<Mem>::ChunkPlace;
    [[gnu::always_inline]] void add_head(uint32_t i, Cursor<Mem> &at, uint64_t word,
                                         const Body &body)
    {
        std::byte *line = at.take();
        if (i == 0)
            body.store_with(first_line_, word);
        else
            Mem::head(line, body, word);
    }
    [[gnu::always_inline]] void add_full_head(uint32_t, Cursor<Mem> &at, const LineBegin &begin,
                                              const std::byte *from)
    {
        Mem::full_head(at.take(), begin, from);
    }
    [[gnu::always_inline]] void add_rest(uint32_t, Cursor<Mem> &at, const std::byte *from,
                                         Rest rest)
    {
        Mem::rest(at.take(), from, rest, wire::continuation_word(at.tag()));
    }
    void add_buffers() {}
    [[gnu::always_inline]] void publish(uint32_t)
    {
        this->settle_past();
        Mem::line(this->line(0), first_line_);
        Mem::flush();
    }
};

/// One fence comes between all bodies and all words.
template <MemPolicy Mem>
class Chunk<Mem, Order::fence> : public ChunkPlace<Mem>
{
    uint64_t words_[chunk_lines];

public:
    using ChunkPlace<Mem>::ChunkPlace;
    [[gnu::always_inline]] void add_head(uint32_t i, Cursor<Mem> &at, uint64_t word,
                                         const Body &body)
    {
        words_[i] = word;
        Mem::body(at.take(), body);
    }
    [[gnu::always_inline]] void add_full_head(uint32_t i, Cursor<Mem> &at, const LineBegin &begin,
                                              const std::byte *from)
    {
        add_head(i, at, begin.word(), Body(begin.meta(), from, wire::head_payload_bytes));
    }
    [[gnu::always_inline]] void add_rest(uint32_t i, Cursor<Mem> &at, const std::byte *from,
                                         Rest rest)
    {
        words_[i] = wire::continuation_word(at.tag());
        Mem::copy(at.take() + wire::cont_payload_offset, from, rest.bytes());
    }
    void add_buffers() {}
    [[gnu::always_inline]] void publish(uint32_t lines)
    {
        this->settle_past();
        Mem::body_fence();
        for (uint32_t i = lines; i-- > 0;)
            Mem::word(this->line(i), words_[i]);
        Mem::flush();
    }
};

/// Each line is published by its own store, so all are assembled here. Data in receive buffers need
/// a fence.
template <MemPolicy Mem>
class Chunk<Mem, Order::whole_line> : public ChunkPlace<Mem>
{
    bool buffers_ = false;
    alignas(64) std::byte lines_[chunk_lines * wire::line_bytes];

    [[gnu::always_inline]] std::byte *staged(uint32_t i) { return lines_ + i * wire::line_bytes; }

public:
    using ChunkPlace<Mem>::ChunkPlace;
    [[gnu::always_inline]] void add_head(uint32_t i, Cursor<Mem> &, uint64_t word, const Body &body)
    {
        body.store_with(staged(i), word);
    }
    [[gnu::always_inline]] void add_full_head(uint32_t i, Cursor<Mem> &, const LineBegin &begin,
                                              const std::byte *from)
    {
        store_full_head(staged(i), begin, from);
    }
    [[gnu::always_inline]] void add_rest(uint32_t i, Cursor<Mem> &at, const std::byte *from,
                                         Rest rest)
    {
        std::byte *whole = staged(i);
        if (rest.bytes() < wire::cont_payload_bytes) // all of it is stored: no stack contents must
            __builtin_memset(whole, 0, wire::line_bytes); // leave
        store_rest(whole, from, rest, wire::continuation_word(at.tag()));
    }
    void add_buffers() { buffers_ = true; }
    [[gnu::always_inline]] void publish(uint32_t lines)
    {
        this->settle_past();
        if (buffers_)
            Mem::body_fence();
        for (uint32_t i = lines; i-- > 0;)
            Mem::line(this->line(i), staged(i));
        Mem::flush();
    }
};

} // namespace plx::queue::PLX_VARIANT

#endif
