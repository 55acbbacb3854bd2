// SPDX-License-Identifier: BSD-3-Clause
#include "port/connection.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <linux/magic.h>
#include <ntbclient.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "port/client.hpp"
#include "port/memory_files.hpp"

namespace ntb::verbs
{
namespace
{

// In front of each message. Both together fill whole lines, so that no line holds parts of two.
struct Prefix {
    std::uint32_t bytes;
    std::uint32_t reserved;
};
constexpr std::size_t line = 64;

constexpr std::size_t footprint(std::uint32_t bytes)
{
    return (sizeof(Prefix) + bytes + line - 1) & ~(line - 1);
}

} // namespace

// The longest message is a quarter of the ring: for so much the connection can be waited for, and
// so much is let through to a reader that takes nothing before it is complete.
std::unique_ptr<Connection> Connection::create(ntbclient_conn *conn)
{
    ntbclient_info info = {};
    info.size = sizeof(info);
    ntbclient_info_get(conn, &info);
    if (info.ring_bytes < least_ring) {
        errno = EMSGSIZE;
        return nullptr;
    }
    std::unique_ptr<Connection> port(new (std::nothrow) Connection);
    if (!port)
        return nullptr;
    const std::size_t quarter = info.ring_bytes / 4;
    port->size_ = info.ring_bytes;
    port->memory_.reset(new (std::nothrow) std::byte[line + quarter + port->size_]);
    if (!port->memory_)
        return nullptr;
    const auto at = reinterpret_cast<std::uintptr_t>(port->memory_.get());
    port->out_ = port->memory_.get() + (line - at % line) % line;
    port->in_ = port->out_ + quarter;
    port->longest_ = static_cast<std::uint32_t>(quarter - sizeof(Prefix));
    port->conn_ = conn;
    return port;
}

Connection::~Connection()
{
    ntbclient_close(conn_);
}

std::byte *Connection::reserve(std::uint32_t bytes)
{
    if (bytes > longest_)
        return nullptr;
    const std::size_t wanted = footprint(bytes);
    if (room_ < wanted) {
        room_ = ntbclient_writable(conn_);
        if (room_ < wanted)
            return nullptr;
    }
    return out_ + sizeof(Prefix);
}

// What does not go any more is lost with the connection, as receive() will find.
void Connection::commit(std::uint32_t bytes)
{
    const std::size_t whole = footprint(bytes);
    const Prefix prefix = {bytes, 0};
    std::memcpy(out_, &prefix, sizeof(prefix));
    std::memset(out_ + sizeof(prefix) + bytes, 0, whole - sizeof(prefix) - bytes);
    const ssize_t sent = ntbclient_send(conn_, out_, whole, 0);
    room_ = sent == static_cast<ssize_t>(whole) ? room_ - whole : 0;
}

// @retval false there is no whole message in what was received, or none can be
bool Connection::find(Incoming &message)
{
    if (end_ - begin_ < line)
        return false;
    Prefix prefix;
    std::memcpy(&prefix, in_ + begin_, sizeof(prefix));
    if (prefix.bytes > longest_) {
        ntbclient_reset(conn_);
        begin_ = end_ = 0;
        ended_ = true;
        return false;
    }
    taken_ = footprint(prefix.bytes);
    message = {in_ + begin_ + sizeof(prefix), prefix.bytes};
    return end_ - begin_ >= taken_;
}

bool Connection::receive(Incoming &message)
{
    if (find(message))
        return true;
    if (ended_)
        return false;
    if (begin_ != 0) {
        std::memmove(in_, in_ + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    const ssize_t got = ntbclient_recv(conn_, in_ + end_, size_ - end_, 0);
    if (got > 0) {
        end_ += static_cast<std::size_t>(got);
        return find(message);
    }
    ended_ = got != -EAGAIN;
    return false;
}

void Connection::close()
{
    ntbclient_reset(conn_);
    ended_ = closed_ = true;
    begin_ = end_ = 0;
}

bool Connection::arm(bool for_room)
{
    Incoming message;
    return !find(message) && !ended_ &&
           ntbclient_arm(conn_, NTBCLIENT_READABLE | (for_room ? NTBCLIENT_WRITABLE : 0)) == 0;
}

void Connection::disarm()
{
    ntbclient_disarm(conn_, NTBCLIENT_READABLE | NTBCLIENT_WRITABLE);
}

int Connection::bell() const
{
    return ntbclient_conn_fd(conn_);
}

// ---- memory

void Connection::set_doors(Door &own, const DoorName &peer)
{
    if ((peer.half[0] | peer.half[1]) == 0)
        return;
    door_ = &own;
    peer_door_ = peer;
    peer_user_ = info_of(conn_).peer_uid;
}

// The number is drawn, so that nobody else can bring something under it.
std::uint64_t Connection::grant(const Segment &segment, bool writable)
{
    std::uint64_t number = 0;
    if (!door_ || ended_ ||
        getrandom(&number, sizeof(number), 0) != static_cast<ssize_t>(sizeof(number)))
        return 0;
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", segment.descriptor());
    const int to_read = writable ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
    const int brought = writable ? segment.descriptor() : to_read;
    const bool done = brought >= 0 && bring(peer_door_, peer_user_, number, brought);
    if (to_read >= 0)
        ::close(to_read);
    return done ? number : 0;
}

// What the peer has brought is a memory file that keeps its size: no access raises SIGBUS, and none
// waits for anybody.
std::unique_ptr<Segment> Connection::open(std::uint64_t number, bool &writable)
{
    const int file = door_ ? door_->take(number, peer_user_) : -1;
    if (file < 0)
        return nullptr;
    std::unique_ptr<Segment> segment;
    struct stat status;
    struct statfs system;
    const int seals = fcntl(file, F_GET_SEALS);
    const int mode = fcntl(file, F_GETFL);
    if (seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && mode >= 0 && fstat(file, &status) == 0 &&
        fstatfs(file, &system) == 0 && system.f_type == TMPFS_MAGIC && status.st_size > 0 &&
        status.st_size % system.f_bsize == 0) {
        writable = (mode & O_ACCMODE) == O_RDWR;
        segment =
            MemoryFile::map(file, static_cast<std::uint64_t>(status.st_size), writable, false);
    }
    ::close(file);
    return segment;
}

} // namespace ntb::verbs
