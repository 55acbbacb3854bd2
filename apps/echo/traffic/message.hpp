// SPDX-License-Identifier: BSD-3-Clause
// Messages as mbufs: one, or a chain where the data room of one is too small.
#ifndef ECHO_TRAFFIC_MESSAGE_HPP
#define ECHO_TRAFFIC_MESSAGE_HPP

#include <cstddef>
#include <vector>

struct rte_mbuf;
struct rte_mempool;

namespace echo
{

/// A message of @p bytes (0 to 16 MiB) whose content is whatever the mbufs held.
/// @return NULL while the pool has not enough mbufs: nothing is held then
rte_mbuf *alloc_message(rte_mempool *pool, size_t bytes);

/// The same with @p data copied into it.
rte_mbuf *make_message(rte_mempool *pool, const std::byte *data, size_t bytes);

/// Reads a message from its first byte on, whatever its mbufs are.
class Content
{
public:
    /// Of none.
    Content() = default;
    explicit Content(const rte_mbuf *message) : piece_(message) {}

    /// Copies the next @p bytes, which there are, to @p to, which is not read.
    void copy(std::byte *to, size_t bytes);

private:
    const rte_mbuf *piece_ = nullptr;
    size_t at_ = 0; ///< of the piece
};

/// Content of messages that are made here: nothing that a compression or a store of zeros could
/// profit from.
std::vector<std::byte> test_pattern(size_t bytes);

} // namespace echo

#endif
