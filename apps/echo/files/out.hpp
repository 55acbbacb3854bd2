// SPDX-License-Identifier: BSD-3-Clause
// A file on its way to the peer, from its offer to the peer's report that it has it.
#ifndef ECHO_FILES_OUT_HPP
#define ECHO_FILES_OUT_HPP

#include <cstdint>
#include <string>

#include "files/wire.hpp"
#include "files/work.hpp"

struct rte_mbuf;
struct rte_mempool;

namespace echo::file
{

/// It says what is to be sent next, and takes the answers of the peer.
class Out
{
public:
    enum class State {
        none,     ///< no file
        offering, ///< the offer is to be sent
        offered,  ///< the peer is to answer
        reading,  ///< what the peer has is compared with the file
        sending,  ///< data, then the end
        ended,    ///< the peer is to say that it has it all
    };

    Out() = default;
    ~Out() { close(); }
    Out(const Out &) = delete;
    Out &operator=(const Out &) = delete;

    /// @return empty, or one line that says why it cannot be sent: there is no job then
    std::string open(FileJob job);
    void close();

    State state() const { return state_; }
    const FileJob &job() const { return job_; }
    uint64_t bytes() const { return size_; }
    uint64_t sent() const { return offset_; } ///< bytes, those included that the peer had
    uint32_t crc() const { return crc_; }
    /// Whether @p message is about the offer that stands, or about an earlier one of this job.
    bool is_mine(const Message &message) const { return message.transfer == transfer_; }
    bool was_mine(const Message &message) const
    {
        return message.transfer <= transfer_ && message.transfer >= first_;
    }

    /// Another offer of the same, with another number.
    void offer_again();
    Message offer();
    /// The peer has accepted, from an offset on.
    void accepted(const Message &accept);
    /// Reads on in what the peer has. @return false: it failed
    bool read_some();
    /// The next data, at most @p bytes of them, behind a header.
    /// @return NULL: nothing now, or it failed
    rte_mbuf *next(rte_mempool *pool, uint64_t bytes);
    bool has_data() const { return state_ == State::sending && offset_ < size_; }
    Message end();

    /// Why next() or read_some() failed, as errno; 0: it did not.
    int error() const { return error_; }

private:
    FileJob job_;
    State state_ = State::none;
    int fd_ = -1;
    uint32_t mode_ = 0;
    uint64_t size_ = 0;
    int64_t time_ns_ = 0;
    uint64_t first_ = 0, transfer_ = 0;
    uint64_t peer_has_ = 0;
    uint32_t peer_crc_ = 0;
    uint64_t offset_ = 0;
    uint32_t crc_ = 0; ///< of the bytes up to offset_
    int error_ = 0;
};

} // namespace echo::file

#endif
