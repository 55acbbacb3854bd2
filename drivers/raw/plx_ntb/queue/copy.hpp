// SPDX-License-Identifier: BSD-3-Clause
// The copies of the hot path, written for the instruction set that this file is compiled for.
#ifndef PLX_QUEUE_COPY_HPP
#define PLX_QUEUE_COPY_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <immintrin.h>

#include "queue/wire.hpp"

#ifndef PLX_VARIANT
#define PLX_VARIANT generic
#endif

namespace plx::queue::PLX_VARIANT
{

#if defined(__AVX512BW__) && defined(__AVX512VL__)
using Wide = __m512i;
#elif defined(__AVX2__)
using Wide = __m256i;
#else
using Wide = __m128i;
#endif

/// Half bytes in registers. By hand: what the compiler makes of memcpy() and an object of 32 bytes
/// goes through memory.
template <size_t Half>
struct Piece {
    using Part = std::conditional_t<Half == 4, uint32_t, uint64_t>;
    Part part;
    [[gnu::always_inline]] static Piece load(const std::byte *from)
    {
        Piece piece;
        __builtin_memcpy(&piece.part, from, Half);
        return piece;
    }
    [[gnu::always_inline]] void store(std::byte *to) const { __builtin_memcpy(to, &part, Half); }
};
template <>
struct Piece<16> {
    __m128i part;
    [[gnu::always_inline]] static Piece load(const std::byte *from)
    {
        return {_mm_loadu_si128(reinterpret_cast<const __m128i *>(from))};
    }
    [[gnu::always_inline]] void store(std::byte *to) const
    {
        _mm_storeu_si128(reinterpret_cast<__m128i *>(to), part);
    }
};
template <>
struct Piece<32> {
#ifdef __AVX2__
    __m256i part;
    [[gnu::always_inline]] static Piece load(const std::byte *from)
    {
        return {_mm256_loadu_si256(reinterpret_cast<const __m256i *>(from))};
    }
    [[gnu::always_inline]] void store(std::byte *to) const
    {
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), part);
    }
#else
    Piece<16> first, second;
    [[gnu::always_inline]] static Piece load(const std::byte *from)
    {
        return {Piece<16>::load(from), Piece<16>::load(from + 16)};
    }
    [[gnu::always_inline]] void store(std::byte *to) const
    {
        first.store(to);
        second.store(to + 16);
    }
#endif
};

/// Copies n bytes, Half <= n <= 2 * Half, by two stores that overlap.
template <size_t Half>
[[gnu::always_inline]] inline void copy_ends(std::byte *to, const std::byte *from, size_t n)
{
    const auto begin = Piece<Half>::load(from), end = Piece<Half>::load(from + n - Half);
    begin.store(to);
    end.store(to + n - Half);
}

/// Copies N bytes, a constant.
template <size_t N>
[[gnu::always_inline]] inline void copy_fixed(std::byte *to, const std::byte *from)
{
    if constexpr (sizeof(Wide) >= 32 && N > 32 && N <= 64)
        copy_ends<32>(to, from, N);
    else
        __builtin_memcpy(to, from, N);
}

/// A non-temporal store: it goes past the caches, in any order until a store fence.
[[gnu::always_inline]] inline void store_non_temporal(std::byte *to, Wide part)
{
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    _mm512_stream_si512(reinterpret_cast<__m512i *>(to), part);
#elif defined(__AVX2__)
    _mm256_stream_si256(reinterpret_cast<__m256i *>(to), part);
#else
    _mm_stream_si128(reinterpret_cast<__m128i *>(to), part);
#endif
}

/// Copies n < 64 bytes.
[[gnu::always_inline]] inline void copy_short(std::byte *to, const std::byte *from, size_t n)
{
    if (n >= 32)
        copy_ends<32>(to, from, n);
    else if (n >= 16)
        copy_ends<16>(to, from, n);
    else if (n >= 8)
        copy_ends<8>(to, from, n);
    else if (n >= 4)
        copy_ends<4>(to, from, n);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
}

/// A usual store.
[[gnu::always_inline]] inline void store_plain(std::byte *to, Wide part)
{
    __builtin_memcpy(to, &part, sizeof(part));
}

/// Copies n bytes line by line, so that no line of the target is touched twice far apart: whole
/// lines by @p store, the rest by usual stores.
template <auto store>
[[gnu::always_inline]] inline void copy_lines(std::byte *to, const std::byte *from, size_t n)
{
    constexpr size_t step = wire::line_bytes / sizeof(Wide);
    for (; n >= wire::line_bytes; n -= wire::line_bytes) {
        Wide part[step];
        for (size_t i = 0; i < step; i++)
            __builtin_memcpy(&part[i], from + i * sizeof(Wide), sizeof(Wide));
        for (size_t i = 0; i < step; i++)
            store(to + i * sizeof(Wide), part[i]);
        to += wire::line_bytes;
        from += wire::line_bytes;
    }
    if (n != 0)
        copy_short(to, from, n);
}

[[gnu::always_inline]] inline void copy_bytes(std::byte *to, const std::byte *from, size_t n)
{
    copy_lines<store_plain>(to, from, n);
}

/// @param to the begin of a line
[[gnu::always_inline]] inline void copy_non_temporal(std::byte *to, const std::byte *from, size_t n)
{
    copy_lines<store_non_temporal>(to, from, n);
}

/// What header lines of messages that are alike begin with: word and metadata, in a register.
/// Opaque to the compiler, which would else put it together for each line.
class LineBegin
{
#ifdef __AVX2__
    using Register = __m256i; ///< the half that is to be replaced included
    [[gnu::always_inline]] static Register of(__m128i both)
    {
        return _mm256_castsi128_si256(both);
    }
    [[gnu::always_inline]] static __m128i first(Register both)
    {
        return _mm256_castsi256_si128(both);
    }
#else
    using Register = __m128i;
    [[gnu::always_inline]] static Register of(__m128i both)
    {
        return both;
    }
    [[gnu::always_inline]] static __m128i first(Register both)
    {
        return both;
    }
#endif
    uint64_t word_, meta_;
    Register both_;

public:
    [[gnu::always_inline]] LineBegin(uint64_t word, uint64_t meta) : word_(word), meta_(meta)
    {
        Register both =
            of(_mm_set_epi64x(static_cast<long long>(meta), static_cast<long long>(word)));
        asm("" : "+x"(both));
        both_ = both;
    }
    [[gnu::always_inline]] uint64_t word() const
    {
        return word_;
    }
    [[gnu::always_inline]] uint64_t meta() const
    {
        return meta_;
    }
    [[gnu::always_inline]] __m128i both() const
    {
        return first(both_);
    }
    [[gnu::always_inline]] Register whole() const
    {
        return both_;
    }
};

/// Bytes 8 to 63 of a header line, in registers: metadata and up to 48 bytes of payload with zeros
/// behind them, so that no byte beyond the message leaves this host.
#if defined(__AVX512BW__) && defined(__AVX512VL__)
/// @p n bytes, at most 56, to the places from @p at on of a line that is zero elsewhere. Other
/// bytes are not touched, so nothing has to lie around them.
[[gnu::always_inline]] inline __m512i load_line(const std::byte *from, uint32_t n, size_t at)
{
    return _mm512_maskz_loadu_epi8(_cvtu64_mask64(_bzhi_u64(~uint64_t{0}, n) << at), from - at);
}

class Body
{
    __m512i payload_;
    uint64_t meta_;
    [[gnu::always_inline]] __m512i with(uint64_t word) const
    {
        const __m128i begin =
            _mm_set_epi64x(static_cast<long long>(meta_), static_cast<long long>(word));
        return _mm512_or_si512(payload_, _mm512_zextsi128_si512(begin));
    }

public:
    static constexpr int readable = 0;
    [[gnu::always_inline]] Body(uint64_t meta, const std::byte *data, uint32_t length)
        : payload_(load_line(data, length, wire::head_payload_offset)), meta_(meta)
    {
    }
    explicit Body(uint64_t meta) : payload_(_mm512_setzero_si512()), meta_(meta) {}
    [[gnu::always_inline]] void store(std::byte *line) const
    {
        _mm512_mask_storeu_epi64(line, 0xfe, with(0));
    }
    /// Bytes 0 to 7 too.
    [[gnu::always_inline]] void store_with(std::byte *line, uint64_t word) const
    {
        _mm512_store_si512(line, with(word));
    }
};

/// A header line full of payload.
[[gnu::always_inline]] inline void store_full_head(std::byte *line, const LineBegin &begin,
                                                   const std::byte *from)
{
    const __m512i payload = load_line(from, wire::head_payload_bytes, wire::head_payload_offset);
    _mm512_store_si512(line, _mm512_or_si512(payload, _mm512_zextsi128_si512(begin.both())));
}

/// How so many bytes, at most 56, are copied to a continuation line: nothing has to be chosen.
class Rest
{
    uint32_t n_;

public:
    [[gnu::always_inline]] Rest(size_t n) : n_(static_cast<uint32_t>(n)) {}
    [[gnu::always_inline]] uint32_t bytes() const { return n_; }
    [[gnu::always_inline]] Rest kept() const { return *this; }
};

/// A continuation line and its word: one store.
[[gnu::always_inline]] inline void store_rest(std::byte *line, const std::byte *from, Rest rest,
                                              uint64_t word)
{
    const __m512i begin = _mm512_zextsi128_si512(_mm_cvtsi64_si128(static_cast<long long>(word)));
    _mm512_store_si512(
        line, _mm512_or_si512(load_line(from, rest.bytes(), wire::cont_payload_offset), begin));
}

/// Calls @p store with the least and the most bytes that are copied as @p n are.
template <class Store>
[[gnu::always_inline]] inline auto with_rest(size_t, Store store)
{
    return store.template operator()<1, wire::cont_payload_bytes>();
}
#else
/// 48 bytes of ones, then 48 of zeros: a load at 48 - n gives n bytes of ones.
struct alignas(64) MaskTable {
    uint8_t bytes[96];
    constexpr MaskTable() : bytes{}
    {
        for (int i = 0; i < 48; i++)
            bytes[i] = 0xff;
    }
};
inline constexpr MaskTable mask_table;

class Body
{
    uint64_t meta_;
    __m128i part_[3];

public:
    /// The constructor reads this many bytes from the start of the message.
    static constexpr int readable = wire::head_payload_bytes;
    [[gnu::always_inline]] Body(uint64_t meta, const std::byte *data, uint32_t length) : meta_(meta)
    {
        const uint8_t *mask = mask_table.bytes + (wire::head_payload_bytes - length);
        for (int i = 0; i < 3; i++)
            part_[i] = _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i *>(data) + i),
                                     _mm_loadu_si128(reinterpret_cast<const __m128i *>(mask) + i));
    }
    explicit Body(uint64_t meta) : meta_(meta), part_{} {}
    [[gnu::always_inline]] void store(std::byte *line) const
    {
        __builtin_memcpy(line + 8, &meta_, 8);
        for (int i = 0; i < 3; i++)
            _mm_store_si128(reinterpret_cast<__m128i *>(line) + i + 1, part_[i]);
    }
    /// Bytes 0 to 7 too.
    [[gnu::always_inline]] void store_with(std::byte *line, uint64_t word) const
    {
        __builtin_memcpy(line, &word, sizeof(word));
        store(line);
    }
};

/// A header line full of payload.
[[gnu::always_inline]] inline void store_full_head(std::byte *line, const LineBegin &begin,
                                                   const std::byte *from)
{
#ifdef __AVX2__
    const __m128i first = Piece<16>::load(from).part;
    Piece<32>{_mm256_inserti128_si256(begin.whole(), first, 1)}.store(line);
    Piece<32>::load(from + 16).store(line + 32);
#else
    Piece<16>{begin.both()}.store(line);
    __builtin_memcpy(line + wire::head_payload_offset, from, wire::head_payload_bytes);
#endif
}

/// Bytes i to i + 15 bring the last 16 - i bytes of a vector to its front, with zeros behind them.
struct alignas(32) ToFront {
    uint8_t bytes[32];
    constexpr ToFront() : bytes{}
    {
        for (uint8_t i = 0; i < 32; i++)
            bytes[i] = i < 16 ? i : 0x80;
    }
};
inline constexpr ToFront to_front;

/// How so many bytes, at most 56, are copied to a continuation line.
class Rest
{
    size_t n_;
    bool kept_ = false;
    Piece<16> order_{}; ///< of copy_few(), where it is kept

    [[gnu::always_inline]] static Piece<16> order_of(size_t n)
    {
        return Piece<16>::load(reinterpret_cast<const std::byte *>(to_front.bytes) + few - n);
    }

public:
    static constexpr size_t few = 16, half = 32;
    [[gnu::always_inline]] Rest(size_t n) : n_(n) {}
    [[gnu::always_inline]] size_t bytes() const { return n_; }
    /// For many lines: opaque to the compiler, which would else look the order up for each.
    [[gnu::always_inline]] Rest kept() const
    {
        Rest rest(n_);
        if (n_ < few) {
            __m128i order = order_of(n_).part;
            asm("" : "+x"(order));
            rest.order_.part = order;
            rest.kept_ = true;
        }
        return rest;
    }
    /// Fewer than 16.
    [[gnu::always_inline]] void copy_few(std::byte *to, const std::byte *from) const
    {
        const auto last = Piece<16>::load(from + n_ - few);
        const auto order = kept_ ? order_ : order_of(n_);
        Piece<16>{_mm_shuffle_epi8(last.part, order.part)}.store(to);
    }
};

/// A continuation line and its word. In front of @p from lie other bytes of the message, so that 16
/// may be read that end where it ends.
[[gnu::always_inline]] inline void store_rest(std::byte *line, const std::byte *from, Rest rest,
                                              uint64_t word)
{
    std::byte *to = line + wire::cont_payload_offset;
    const size_t n = rest.bytes();
    __builtin_memcpy(line, &word, sizeof(word));
    if (n >= Rest::half)
        copy_ends<Rest::half>(to, from, n);
    else if (n >= Rest::few)
        copy_ends<Rest::few>(to, from, n);
    else
        rest.copy_few(to, from);
}

/// Calls @p store with the least and the most bytes that are copied as @p n are: for lines of one
/// size how is chosen once.
template <class Store>
[[gnu::always_inline]] inline auto with_rest(size_t n, Store store)
{
    constexpr size_t full = wire::cont_payload_bytes;
    if (n >= Rest::half)
        return store.template operator()<Rest::half, full>();
    if (n >= Rest::few)
        return store.template operator()<Rest::few, Rest::half - 1>();
    return store.template operator()<1, Rest::few - 1>();
}
#endif

} // namespace plx::queue::PLX_VARIANT

#endif
