// SPDX-License-Identifier: BSD-3-Clause
// Whether an mbuf is like the one before it in a burst.
#ifndef PLX_QUEUE_ALIKE_HPP
#define PLX_QUEUE_ALIKE_HPP

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include <rte_mbuf.h>

#ifndef PLX_VARIANT
#define PLX_VARIANT generic
#endif

namespace plx::queue::PLX_VARIANT
{

/// Fields of an mbuf that are compared in one piece.
inline constexpr size_t alike_bytes = 32;
#ifdef __AVX2__
using Fields = __m256i;
[[gnu::always_inline]] inline bool are_alike(Fields a, Fields b, Fields mask)
{
    return _mm256_testz_si256(_mm256_xor_si256(a, b), mask) != 0;
}
#else
struct Fields {
    __m128i half[2];
};
[[gnu::always_inline]] inline bool are_alike(Fields a, Fields b, Fields mask)
{
    return (_mm_testz_si128(_mm_xor_si128(a.half[0], b.half[0]), mask.half[0]) &
            _mm_testz_si128(_mm_xor_si128(a.half[1], b.half[1]), mask.half[1])) != 0;
}
#endif
[[gnu::always_inline]] inline Fields load_fields(const void *from)
{
    static_assert(sizeof(Fields) == alike_bytes);
    Fields fields;
    __builtin_memcpy(&fields, from, sizeof(fields));
    return fields;
}

/// The fields of an mbuf from data_off to data_len, of which those count that say where its bytes
/// lie and whether they are its own. (Not the port, the packet type and other flags.)
struct alignas(32) AlikeMask {
    static constexpr size_t begin = offsetof(rte_mbuf, rearm_data);
    uint8_t byte[alike_bytes];
    constexpr AlikeMask() : byte{}
    {
        constexpr uint64_t not_own = RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
        for (size_t i = 0; i < 8; i++)
            byte[offsetof(rte_mbuf, ol_flags) - begin + i] = static_cast<uint8_t>(not_own >> 8 * i);
        for (size_t i = 0; i < 2; i++)
            for (const size_t at : {offsetof(rte_mbuf, data_off), offsetof(rte_mbuf, refcnt),
                                    offsetof(rte_mbuf, nb_segs), offsetof(rte_mbuf, pkt_len),
                                    offsetof(rte_mbuf, pkt_len) + 2, offsetof(rte_mbuf, data_len)})
                byte[at - begin + i] = 0xff;
    }
};
inline constexpr AlikeMask alike_mask;

/// What a message has in common with the one before it, which is usual: its length, its place in an
/// mbuf of the same pool, one segment, one reference.
class Alike
{
    const rte_mempool *pool_;
    const Fields like_;

public:
    /// @param m  a usual message: put_run()
    [[gnu::always_inline]] explicit Alike(const rte_mbuf *m)
        : pool_(m->pool), like_(load_fields(&m->rearm_data))
    {
    }
    [[gnu::always_inline]] bool operator()(const rte_mbuf *m) const
    {
        return m->pool == pool_ &&
               are_alike(like_, load_fields(&m->rearm_data), load_fields(alike_mask.byte));
    }
};

} // namespace plx::queue::PLX_VARIANT

#endif
