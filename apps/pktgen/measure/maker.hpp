// SPDX-License-Identifier: BSD-3-Clause
// HOT. Makes messages: mbufs of the endpoint's pool, chained where one is too small, with lengths
// and payload.
#ifndef PKTGEN_MEASURE_MAKER_HPP
#define PKTGEN_MEASURE_MAKER_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "measure/work.hpp"
#include "point/point.hpp"
#include "point/sizes.hpp"
#include "traffic/content.hpp"
#include "traffic/packets.hpp"

struct rte_mempool;

namespace pktgen
{

class Maker
{
public:
    /// @param pool   outlives it
    /// @param packets  what to send in place of the pattern, or NULL; outlives it
    Maker(rte_mempool *pool, const Point &point, Sizes sizes, const Packets *packets);

    /// Makes up to @p n messages, and counts them in @p sent.
    /// @param n       at most largest_burst
    /// @param number  of the first one; they count on from there
    /// @return how many; fewer where mbufs are short for now
    uint16_t make(Staged &into, uint16_t n, uint64_t number, Sent &sent);

private:
    void make_plain(Staged &into, uint16_t n, uint64_t number, Sent &sent) const;
    bool take_chain(rte_mbuf *&message, uint32_t size);
    void finish(rte_mbuf *message, ntbmsg_meta &meta, uint64_t number, Sent &sent);
    void fill(std::byte *at, size_t bytes, size_t done, uint64_t number) const;

    rte_mempool *const pool_;
    const uint32_t room_; ///< bytes of a segment, whole lines
    const bool verify_;
    const Packets *const packets_;
    Sizes sizes_;
    const bool plain_; ///< one size, one segment, the counter and no stamp: what figures are of
    std::vector<rte_mbuf *> segments_; ///< of the chain that is being made
    const Content content_;
};

/// Bytes of payload that a segment of this pool holds, in whole lines.
uint32_t segment_room(rte_mempool *pool);

} // namespace pktgen

#endif
