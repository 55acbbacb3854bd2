// SPDX-License-Identifier: BSD-3-Clause
#include "files/out.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

#include <rte_mbuf.h>

#include "crc32c.hpp"
#include "traffic/message.hpp"

namespace echo::file
{

namespace
{

constexpr size_t read_bytes = size_t{256} << 10; // a fraction of a millisecond
constexpr size_t most_pieces = 64;

/// Reads @p bytes at @p offset of a file into @p message, behind its header.
/// @return 0 or errno; EIO: the file has become shorter
int read_into(int fd, rte_mbuf *message, uint64_t bytes, uint64_t offset, uint32_t &crc)
{
    std::array<iovec, most_pieces> pieces;
    size_t skip = header_bytes;
    for (rte_mbuf *segment = message; bytes != 0;) {
        int count = 0;
        size_t wanted = 0;
        for (; segment != nullptr && count < static_cast<int>(most_pieces);
             segment = segment->next, ++count, skip = 0) {
            pieces[static_cast<size_t>(count)] = {rte_pktmbuf_mtod_offset(segment, void *, skip),
                                                  segment->data_len - skip};
            wanted += segment->data_len - skip;
        }
        ssize_t got = 0;
        do
            got = preadv(fd, pieces.data(), count, static_cast<off_t>(offset));
        while (got < 0 && errno == EINTR);
        if (got < 0)
            return errno;
        if (static_cast<size_t>(got) != wanted)
            return EIO;
        for (int i = 0; i < count; ++i)
            crc = app::crc32c(pieces[static_cast<size_t>(i)].iov_base,
                              pieces[static_cast<size_t>(i)].iov_len, crc);
        offset += wanted;
        bytes -= wanted;
    }
    return 0;
}

} // namespace

std::string Out::open(FileJob job)
{
    close();
    const int type = job.folder ? O_DIRECTORY : 0;
    fd_ = ::open(job.path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | type);
    struct stat status = {};
    if (fd_ < 0 || fstat(fd_, &status) != 0) {
        close();
        return job.path + ": " + std::strerror(errno);
    }
    if (!job.folder && !S_ISREG(status.st_mode)) {
        close();
        return job.path + " is no file any more";
    }
    mode_ = status.st_mode & (S_IFMT | 0777);
    size_ = job.folder ? 0 : static_cast<uint64_t>(status.st_size);
    time_ns_ = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
    job_ = std::move(job);
    // Random: differs at each start of this program.
    std::random_device random;
    first_ = transfer_ = uint64_t{random() & 0x7fffffff} << 32 | random();
    state_ = State::offering;
    return {};
}

void Out::close()
{
    if (fd_ >= 0)
        ::close(fd_);
    fd_ = -1;
    state_ = State::none;
    offset_ = 0;
    crc_ = 0;
    error_ = 0;
}

void Out::offer_again()
{
    if (state_ == State::none)
        return;
    ++transfer_;
    offset_ = 0;
    crc_ = 0;
    state_ = State::offering;
}

Message Out::offer()
{
    state_ = State::offered;
    return {Kind::offer, mode_, transfer_, size_, time_ns_, job_.name};
}

void Out::accepted(const Message &accept)
{
    if (state_ != State::offered)
        return;
    peer_has_ = accept.number;
    peer_crc_ = accept.value;
    // More than there is to send: it has something else.
    state_ = peer_has_ == 0 || peer_has_ > size_ ? State::sending : State::reading;
}

bool Out::read_some()
{
    std::vector<std::byte> piece(std::min<uint64_t>(read_bytes, peer_has_ - offset_));
    const ssize_t got = pread(fd_, piece.data(), piece.size(), static_cast<off_t>(offset_));
    if (got <= 0) {
        error_ = got == 0 ? EIO : errno;
        return false;
    }
    crc_ = app::crc32c(piece.data(), static_cast<size_t>(got), crc_);
    offset_ += static_cast<uint64_t>(got);
    if (offset_ < peer_has_)
        return true;
    if (crc_ != peer_crc_) {
        offset_ = 0;
        crc_ = 0;
    }
    state_ = State::sending;
    return true;
}

rte_mbuf *Out::next(rte_mempool *pool, uint64_t bytes)
{
    bytes = std::min(bytes, size_ - offset_);
    rte_mbuf *message = alloc_message(pool, header_bytes + bytes);
    if (message == nullptr)
        return nullptr;
    std::span<std::byte, header_bytes> header(rte_pktmbuf_mtod(message, std::byte *), header_bytes);
    encode({Kind::data, 0, transfer_, offset_}, header);
    error_ = read_into(fd_, message, bytes, offset_, crc_);
    if (error_ != 0) {
        rte_pktmbuf_free(message);
        return nullptr;
    }
    offset_ += bytes;
    return message;
}

Message Out::end()
{
    state_ = State::ended;
    return {Kind::end, crc_, transfer_, size_};
}

} // namespace echo::file
