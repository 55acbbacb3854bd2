// SPDX-License-Identifier: BSD-3-Clause
#include "files/in.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <rte_mbuf.h>

#include "crc32c.hpp"

namespace echo::file
{

namespace
{

constexpr size_t read_bytes = size_t{256} << 10; // a fraction of a millisecond
constexpr size_t most_pieces = 64;
constexpr int64_t second_ns = 1'000'000'000;

mode_t read_mask()
{
    const mode_t mask = umask(0);
    umask(mask);
    return mask;
}
// Asked before there are threads: asking sets it, for all of them.
const mode_t creation_mask = read_mask();

/// Opens folder @p name in @p parent, which it makes where it is not. @return descriptor or -errno
int step_into(int parent, const std::string &name)
{
    if (mkdirat(parent, name.c_str(), 0777) != 0 && errno != EEXIST)
        return -errno;
    const int fd = openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 ? fd : -errno;
}

/// The folder that @p name lies in, below @p root, a component at a time: no "..", no link, so no
/// way out. @return descriptor or -errno
int open_parent(int root, const std::string &name, std::string &leaf)
{
    int fd = fcntl(root, F_DUPFD_CLOEXEC, 0);
    size_t begin = 0;
    for (size_t end = name.find('/'); fd >= 0 && end != std::string::npos;
         end = name.find('/', begin)) {
        const int next = step_into(fd, name.substr(begin, end - begin));
        close(fd);
        if (next < 0)
            return next;
        fd = next;
        begin = end + 1;
    }
    leaf = name.substr(begin);
    return fd >= 0 ? fd : -errno;
}

int64_t time_of(const struct stat &status)
{
    return status.st_mtim.tv_sec * second_ns + status.st_mtim.tv_nsec;
}

timespec timespec_of(int64_t ns)
{
    timespec time = {ns / second_ns, ns % second_ns};
    if (time.tv_nsec < 0) {
        time.tv_nsec += second_ns;
        --time.tv_sec;
    }
    return time;
}

/// Writes pieces at @p offset, all of them. @return 0 or errno
int write_all(int fd, iovec *pieces, int count, uint64_t offset)
{
    while (count > 0) {
        ssize_t done = pwritev(fd, pieces, count, static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done == 0 ? EIO : errno;
        offset += static_cast<uint64_t>(done);
        for (; count > 0 && static_cast<size_t>(done) >= pieces->iov_len; ++pieces, --count)
            done -= static_cast<ssize_t>(pieces->iov_len);
        if (count > 0) {
            pieces->iov_base = static_cast<std::byte *>(pieces->iov_base) + done;
            pieces->iov_len -= static_cast<size_t>(done);
        }
    }
    return 0;
}

} // namespace

int make_folder(int root, const std::string &name)
{
    std::string leaf;
    const int parent = open_parent(root, name, leaf);
    if (parent < 0)
        return -parent;
    const int fd = step_into(parent, leaf);
    close(parent);
    if (fd < 0)
        return -fd;
    close(fd);
    return 0;
}

int In::open(int root, const Message &offer)
{
    close();
    offer_ = offer;
    parent_ = open_parent(root, offer.name, leaf_);
    if (parent_ < 0)
        return -std::exchange(parent_, -1);
    struct stat status = {};
    const bool exists = fstatat(parent_, leaf_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (exists && S_ISDIR(status.st_mode)) {
        close();
        return EISDIR;
    }
    in_place_ = exists && S_ISREG(status.st_mode) &&
                static_cast<uint64_t>(status.st_size) == offer.number &&
                time_of(status) == offer.time_ns;
    if (in_place_)
        fd_ = openat(parent_, leaf_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    in_place_ = fd_ >= 0;
    if (in_place_)
        there_ = offer.number;
    const int error = in_place_ ? 0 : open_part();
    if (error != 0)
        close();
    return error;
}

/// Opens the partial file and finds out how much of it is there.
int In::open_part()
{
    part_ = part_name(offer_);
    fd_ = openat(parent_, part_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                 0600);
    if (fd_ < 0)
        return errno;
    struct stat status = {};
    if (fstat(fd_, &status) != 0)
        return errno;
    if (!S_ISREG(status.st_mode) || status.st_nlink != 1)
        return EEXIST;
    if (flock(fd_, LOCK_EX | LOCK_NB) != 0)
        return EBUSY; // another queue, or another host's program, is at it
    there_ = static_cast<uint64_t>(status.st_size);
    if (there_ > offer_.number)
        return restart();
    return 0;
}

int In::restart()
{
    there_ = have_ = 0;
    crc_ = 0;
    return ftruncate(fd_, 0) == 0 ? 0 : errno;
}

bool In::is_same(const Message &offer) const
{
    return is_open() && offer.name == offer_.name && offer.number == offer_.number &&
           offer.time_ns == offer_.time_ns;
}

bool In::read_some(int &error)
{
    error = 0;
    std::vector<std::byte> piece(std::min<uint64_t>(read_bytes, there_ - have_));
    const ssize_t got = pread(fd_, piece.data(), piece.size(), static_cast<off_t>(have_));
    if (got < 0) {
        error = errno;
        return false;
    }
    crc_ = app::crc32c(piece.data(), static_cast<size_t>(got), crc_);
    have_ += static_cast<uint64_t>(got);
    if (got == 0)
        there_ = have_; // it was made shorter meanwhile
    return have_ < there_;
}

int In::write(const Message &data, const rte_mbuf *message)
{
    if (data.number == 0 && have_ != 0 && !written_) {
        // The sender's file begins with other bytes than what is there.
        int error = 0;
        if (std::exchange(in_place_, false)) {
            ::close(fd_);
            error = open_part();
        }
        error = error != 0 ? error : restart();
        if (error != 0)
            return error;
    }
    if (in_place_ || data.number != have_ || data.data_bytes > offer_.number - have_)
        return EPROTO;
    written_ = true;
    std::array<iovec, most_pieces> pieces;
    size_t skip = header_bytes;
    uint64_t at = have_;
    for (const rte_mbuf *segment = message; segment != nullptr;) {
        int count = 0;
        uint64_t bytes = 0;
        for (; segment != nullptr && count < static_cast<int>(most_pieces);
             segment = segment->next) {
            const size_t skipped = std::min<size_t>(skip, segment->data_len);
            skip -= skipped;
            iovec &piece = pieces[static_cast<size_t>(count)];
            piece = {rte_pktmbuf_mtod_offset(segment, void *, skipped),
                     segment->data_len - skipped};
            crc_ = app::crc32c(piece.iov_base, piece.iov_len, crc_);
            bytes += piece.iov_len;
            count += piece.iov_len != 0;
        }
        if (const int error = write_all(fd_, pieces.data(), count, at); error != 0)
            return error;
        at += bytes;
    }
    have_ = at;
    return 0;
}

int In::finish(const Message &end)
{
    const bool right = have_ == offer_.number && end.number == have_ && end.value == crc_;
    int error = right ? 0 : EBADMSG;
    if (right && !in_place_) {
        const timespec times[2] = {{0, UTIME_OMIT}, timespec_of(offer_.time_ns)};
        if (fchmod(fd_, offer_.value & 0777 & ~creation_mask) != 0 || futimens(fd_, times) != 0 ||
            renameat(parent_, part_.c_str(), parent_, leaf_.c_str()) != 0)
            error = errno;
    }
    // What is wrong is not resumed.
    if (!right && !in_place_)
        unlinkat(parent_, part_.c_str(), 0);
    close();
    return error;
}

void In::close()
{
    if (fd_ >= 0)
        ::close(fd_);
    if (parent_ >= 0)
        ::close(parent_);
    fd_ = parent_ = -1;
    in_place_ = written_ = false;
    there_ = have_ = 0;
    crc_ = 0;
}

} // namespace echo::file
