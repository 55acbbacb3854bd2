// SPDX-License-Identifier: BSD-3-Clause
// The two ends of a stream: one makes its messages, the other checks every byte of them.
#ifndef TEST_SUPPORT_STREAMS_HPP
#define TEST_SUPPORT_STREAMS_HPP

#include "commands.hpp"

#include <string>
#include <vector>

struct rte_mbuf;
struct rte_mempool;

namespace test
{

/// What the bytes and the metadata of message @p index of stream @p seed follow from.
uint64_t message_key(uint32_t seed, uint32_t index);
/// Writes or compares bytes [at, at + bytes) of a message. @return the bytes that differ
void fill(uint8_t *to, uint64_t key, uint32_t at, uint32_t bytes);
uint32_t differing(const uint8_t *from, uint64_t key, uint32_t at, uint32_t bytes);
rte_pmd_plx_ntb_meta message_meta(const Stream &stream, uint32_t index);
uint32_t message_length(const Stream &stream, uint32_t index);
/// An mbuf chain with message @p index; NULL when the pool is empty.
rte_mbuf *make_message(rte_mempool *pool, const Stream &stream, uint32_t index);
/// @return "" or what is wrong with an mbuf delivered by @p device as message @p index
std::string check_message(const rte_mbuf *mbuf, const rte_pmd_plx_ntb_meta &meta, uint16_t device,
                          const Stream &stream, uint32_t index);

/// One direction of a stream. One thread at a time.
class Half
{
public:
    Half(uint16_t device, const Stream &stream) : device_(device), stream_(stream) {}
    virtual ~Half() = default;
    Half(const Half &) = delete;
    Half &operator=(const Half &) = delete;

    /// One burst. @return messages moved
    virtual unsigned step() = 0;
    bool done() const { return moved_ == stream_.count; }
    uint32_t moved() const { return moved_; }
    bool met_limit() const { return met_limit_; } ///< back-pressure, or nothing to receive
    const std::string &error() const { return error_; }
    const Stream &stream() const { return stream_; }

protected:
    static constexpr unsigned burst_max = 64;

    uint16_t device_;
    Stream stream_;
    uint32_t moved_ = 0;
    bool met_limit_ = false;
    std::string error_;
};

class Sender final : public Half
{
public:
    Sender(uint16_t device, const Stream &stream, rte_mempool *pool)
        : Half(device, stream), pool_(pool)
    {
    }
    ~Sender() override;
    unsigned step() override;

private:
    void make_ready();

    rte_mempool *pool_;
    rte_mbuf *ready_[burst_max] = {};
    rte_pmd_plx_ntb_meta meta_[burst_max] = {};
    unsigned next_ = 0;
    unsigned end_ = 0;
    uint32_t made_ = 0;
};

class Receiver final : public Half
{
public:
    /// @param keep where received mbufs go; NULL: they are freed
    Receiver(uint16_t device, const Stream &stream, std::vector<rte_mbuf *> *keep)
        : Half(device, stream), keep_(keep)
    {
    }
    unsigned step() override;

private:
    std::vector<rte_mbuf *> *keep_;
};

} // namespace test

#endif
