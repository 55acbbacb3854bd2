// SPDX-License-Identifier: BSD-3-Clause
#include "connection/attachment.hpp"

#include <cstring>
#include <new>

#include "kernel/descriptors.hpp"
#include "kernel/memory.hpp"
#include "kernel/shadow.hpp"
#include "kernel/system.hpp"
#include "ring/layout.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

namespace ntb::socket
{

using kernel::call;
using ntbc::Message;
using ntbc::Type;

namespace
{

constexpr std::int64_t retry_after_ms = 1000;
constexpr std::int64_t patience_ms = 5000;
constexpr int seals_needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr int seals_refused = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;

std::int64_t now_ms()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

void close_fd(int fd)
{
    if (fd >= 0)
        call(SYS_close, fd);
}

// What another process sent: sealed memory of this size, or NULL.
std::byte *map_sealed(int fd, std::size_t bytes)
{
    struct stat file = {};
    const long seals = call(SYS_fcntl, fd, F_GET_SEALS, 0);
    if (seals < 0 || (seals & (seals_needed | seals_refused)) != seals_needed ||
        fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) ||
        static_cast<std::size_t>(file.st_size) != bytes)
        return nullptr;
    return kernel::map<std::byte>(bytes, MAP_SHARED, fd);
}

} // namespace

struct Attachment::Letter {
    Message message;
    char excess; // a longer message shows
    int fds[ntbc::fds_max] = {-1, -1, -1};
    int count = 0;

    void clear()
    {
        for (int &fd : fds) {
            close_fd(fd);
            fd = -1;
        }
        count = 0;
    }
};

Attachment *Attachment::create(const char *path, std::uint32_t mirror_within_ms)
{
    const std::size_t length = strnlen(path, path_max);
    if (length == 0 || length == path_max)
        return nullptr;
    void *memory = kernel::map<Attachment>(1, MAP_PRIVATE | MAP_NORESERVE);
    if (memory == nullptr)
        return nullptr;
    auto *made = new (memory) Attachment;
    std::memcpy(made->path_, path, length);
    made->mirror_within_ms_ = mirror_within_ms;
    return made;
}

int Attachment::descriptor() const
{
    return std::atomic_ref(const_cast<int &>(control_)).load(std::memory_order_acquire);
}

bool Attachment::is_out_of_reach() const
{
    return descriptor() < 0 && now_ms() < retry_ms_.load(std::memory_order_relaxed);
}

Attachment::Figures Attachment::figures() const
{
    return figures_;
}

void Attachment::settle()
{
    const Locked held(lock_);
    for (Connection *one = all_; one != nullptr; one = one->next_)
        settle(*one);
}

void Attachment::settle(Connection &one)
{
    const auto take = [this](std::uint64_t Figures::*figure, Connection::Bytes &bytes) {
        const std::uint64_t now = ntbc::load(bytes.moved);
        count(figure, now - bytes.settled);
        bytes.settled = now;
    };
    take(&Figures::ring_sent, one.sent_);
    take(&Figures::ring_received, one.received_);
}

// ---- the daemon

/// @return 0, or a negative errno
int Attachment::send_message(int control, const Message &message, const int *fd)
{
    union {
        cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } rights = {};
    iovec part = {const_cast<Message *>(&message), sizeof(message)};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (fd != nullptr) {
        header.msg_control = rights.bytes;
        header.msg_controllen = sizeof(rights.bytes);
        rights.header.cmsg_level = SOL_SOCKET;
        rights.header.cmsg_type = SCM_RIGHTS;
        rights.header.cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(&rights.header), fd, sizeof(int));
    }
    // One wait for a daemon that hangs is enough: a program may have a thousand connections to
    // close, and its reads say something, too.
    const bool was_deaf = deaf_.load(std::memory_order_relaxed) == control;
    const std::int64_t until = now_ms() + patience_ms;
    for (;;) {
        const long sent = call(SYS_sendmsg, control, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent == -EINTR)
            continue;
        if (sent != -EAGAIN && was_deaf)
            deaf_.store(-1, std::memory_order_relaxed);
        if (sent >= 0)
            return 0;
        // A claim is not worth a wait; what is said of a connection is.
        if (sent != -EAGAIN || fd != nullptr || was_deaf)
            return static_cast<int>(sent);
        if (now_ms() > until) {
            deaf_.store(control, std::memory_order_relaxed);
            return static_cast<int>(sent);
        }
        pollfd one = {control, POLLOUT, 0};
        const timespec some = {0, 10000000};
        call(SYS_ppoll, &one, 1, &some, nullptr, 0);
    }
}

int Attachment::greet(int fd)
{
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_, sizeof(address.sun_path) - 1);
    if (const long error = call(SYS_connect, fd, &address, sizeof(address)); error != 0)
        return static_cast<int>(error);
    Message hello;
    hello.type = Type::hello;
    return send_message(fd, hello, nullptr);
}

/// The answer to the greeting is read with the others.
bool Attachment::reach()
{
    if (control_ >= 0)
        return true;
    if (now_ms() < retry_ms_)
        return false;
    retry_ms_ = now_ms() + retry_after_ms;
    const long fd = call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    const int high = kernel::out_of_the_way(static_cast<int>(fd));
    if (high < 0 || greet(high) != 0) {
        close_fd(high);
        return false;
    }
    std::atomic_ref(control_).store(high, std::memory_order_release);
    return true;
}

void Attachment::connect()
{
    const Locked held(lock_);
    reach();
}

// Connections that it knew of keep its number, which says that it is gone to who polls it.
void Attachment::give_up()
{
    const int gone = control_;
    std::atomic_ref(control_).store(-1, std::memory_order_release);
    retry_ms_ = now_ms() + retry_after_ms;
    bool used = false;
    for (Connection *one = all_, *next; one != nullptr; one = next) {
        next = one->next_;
        if (one->control_ != gone)
            continue;
        if (one->stage_.load() == Connection::Stage::Pending) {
            unlink(one);
            one->stage_.store(Connection::Stage::Native, std::memory_order_release);
            count(&Figures::failed);
        } else {
            used = true;
            one->lose();
        }
    }
    if (used)
        call(SYS_shutdown, gone, SHUT_RDWR);
    else
        close_fd(gone);
}

bool Attachment::take_one(Letter &letter)
{
    union {
        cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * ntbc::fds_max)];
    } rights = {};
    letter.clear();
    iovec part = {&letter, sizeof(Message) + 1};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = rights.bytes;
    header.msg_controllen = sizeof(rights.bytes);
    long got;
    do
        got = call(SYS_recvmsg, control_, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (got == -EINTR);
    if (got == -EAGAIN)
        return false;
    if (header.msg_controllen >= CMSG_LEN(0) && rights.header.cmsg_level == SOL_SOCKET &&
        rights.header.cmsg_type == SCM_RIGHTS && got > 0) {
        letter.count = static_cast<int>((rights.header.cmsg_len - CMSG_LEN(0)) / sizeof(int));
        std::memcpy(letter.fds, CMSG_DATA(&rights.header),
                    sizeof(int) * static_cast<std::size_t>(letter.count));
    }
    if (got == sizeof(Message) && letter.message.magic == ntbc::message_magic &&
        letter.message.version == ntbc::message_version)
        return true;
    give_up();
    return false;
}

void Attachment::take_in()
{
    Letter letter = {};
    while (control_ >= 0 && take_one(letter))
        take(letter);
    letter.clear();
}

void Attachment::process()
{
    const Locked held(lock_);
    take_in();
}

Connection *Attachment::waiting(std::uint64_t token)
{
    for (Connection *one = all_; one != nullptr; one = one->next_)
        if (one->token_ == token && one->stage_.load() == Connection::Stage::Pending)
            return one;
    return nullptr;
}

void Attachment::take(Letter &letter)
{
    const Message &m = letter.message;
    switch (m.type) {
    case Type::answer: // to the greeting
        if (m.status != 0)
            give_up();
        break;
    case Type::claimed:
        take_claimed(letter);
        break;
    case Type::unclaimed:
        if (Connection *one = waiting(m.other); one != nullptr) {
            unlink(one);
            count(m.status == -ETIMEDOUT ? &Figures::unmatched : &Figures::refused);
            one->stage_.store(Connection::Stage::Native, std::memory_order_release);
        }
        break;
    case Type::ended:
        for (Connection *one = all_; one != nullptr; one = one->next_)
            if (one->id_ == m.id && one->control_ == control_ &&
                one->stage_.load() == Connection::Stage::Matched)
                one->lose();
        break;
    default:
        break;
    }
}

void Attachment::take_claimed(Letter &letter)
{
    Connection *one = waiting(letter.message.other);
    if (one != nullptr && map(*one, letter)) {
        count(&Figures::matched);
        return;
    }
    // Left meanwhile, or it cannot be used here: the other end hears that it is TCP.
    Message close;
    close.type = Type::close;
    close.id = letter.message.id;
    send_message(control_, close, nullptr);
    if (one == nullptr)
        return;
    unlink(one);
    count(&Figures::failed);
    one->stage_.store(Connection::Stage::Native, std::memory_order_release);
}

bool Attachment::map(Connection &one, Letter &letter)
{
    const Message &m = letter.message;
    if (letter.count != ntbc::fds_max || m.end != one.index_ || !ntbc::is_ring_size(m.ring_bytes) ||
        kernel::cookie_of(one.fd_) != one.cookie_)
        return false;
    const std::size_t bytes = ntbc::memory_bytes(m.ring_bytes);
    std::byte *page = map_sealed(letter.fds[0], bytes);
    std::byte *record = map_sealed(letter.fds[2], record_bytes);
    const int bell = kernel::out_of_the_way(letter.fds[1]);
    letter.fds[1] = -1;
    if (page == nullptr || record == nullptr || bell < 0) {
        close_fd(bell);
        kernel::unmap(page, bytes);
        kernel::unmap(record, record_bytes);
        return false;
    }
    one.page_ = reinterpret_cast<Page *>(page);
    one.record_ = reinterpret_cast<Record *>(record);
    one.ring_bytes_ = m.ring_bytes;
    one.is_carried_ = (m.flags & ntbc::flag_carried) != 0;
    one.id_ = m.id;
    one.bell_ = bell;
    one.open(one.fd_);
    return true;
}

// ---- connections

Connection *Attachment::take_slot()
{
    Connection *slot = free_;
    if (slot != nullptr)
        free_ = slot->next_;
    else if (used_ < connections_max)
        slot = reinterpret_cast<Connection *>(slots_ + used_++ * sizeof(Connection));
    else
        return nullptr;
    new (slot) Connection;
    slot->attachment_ = this;
    slot->next_ = all_;
    if (all_ != nullptr)
        all_->previous_ = slot;
    all_ = slot;
    return slot;
}

void Attachment::unlink(Connection *one)
{
    if (one->next_ != nullptr)
        one->next_->previous_ = one->previous_;
    if (one->previous_ != nullptr)
        one->previous_->next_ = one->next_;
    else if (all_ == one)
        all_ = one->next_;
    one->next_ = nullptr;
    one->previous_ = nullptr;
}

void Attachment::give_slot(Connection *one)
{
    one->next_ = free_;
    free_ = one;
}

Connection *Connection::claim(Attachment &to, int fd, bool accepted, bool *later)
{
    const Locked held(to.lock_);
    const std::uint64_t cookie = kernel::cookie_of(fd);
    if (cookie == 0 || !to.reach()) {
        to.count(&Attachment::Figures::claimed);
        to.count(&Attachment::Figures::failed);
        return nullptr;
    }
    Connection *one = to.take_slot();
    if (one == nullptr) {
        to.count(&Attachment::Figures::claimed);
        to.count(&Attachment::Figures::failed);
        return nullptr;
    }
    one->index_ = accepted ? 1 : 0;
    one->fd_ = fd;
    one->cookie_ = cookie;
    one->token_ = ++to.last_token_;
    one->control_ = to.control_;
    one->stage_.store(Stage::Pending, std::memory_order_release);
    Message m;
    m.type = Type::claim;
    m.other = one->token_;
    m.flags = accepted ? ntbc::flag_accepted : 0;
    m.timeout_ms = to.mirror_within_ms_;
    m.pid = static_cast<std::uint32_t>(call(SYS_getpid));
    const int status = Attachment::send_message(to.control_, m, &fd);
    // Its socket is full, or as many descriptors are on their way as a user may have.
    const bool is_full = status == -EAGAIN || status == -ETOOMANYREFS;
    if (later != nullptr)
        *later = is_full;
    if (!is_full)
        to.count(&Attachment::Figures::claimed);
    if (status == 0)
        return one;
    to.unlink(one);
    to.give_slot(one);
    if (is_full)
        return nullptr;
    to.count(&Attachment::Figures::failed);
    // The daemon has gone, and no one has waited for its answer since. What a sandbox refuses says
    // nothing of it.
    if (status == -EPIPE || status == -ECONNRESET)
        to.give_up();
    return nullptr;
}

void Attachment::withdraw(Connection &one)
{
    Message m;
    m.type = Type::unclaim;
    m.other = one.token_;
    send_message(one.control_, m, nullptr);
    unlink(&one);
    one.stage_.store(Connection::Stage::Native, std::memory_order_release);
}

// ---- fork

void Attachment::before_fork()
{
    lock_.take();
    take_in();
    for (Connection *one = all_, *next; one != nullptr; one = next) {
        next = one->next_;
        if (one->stage_.load() == Connection::Stage::Pending)
            withdraw(*one);
        else
            one->record_->holders.expect();
    }
}

void Attachment::after_fork_in_parent(pid_t child)
{
    if (child <= 0)
        for (Connection *one = all_; one != nullptr; one = one->next_)
            one->record_->holders.expect_no_more();
    lock_.give();
}

// The parent's attachment stays open for what they have in common, and is not read from here.
void Attachment::after_fork_in_child()
{
    new (&lock_) Lock;
    const auto self = static_cast<std::int32_t>(call(SYS_getpid));
    for (Connection *one = all_; one != nullptr; one = one->next_) {
        one->record_->holders.add(self);
        one->record_->holders.expect_no_more();
        settle(*one); // that was the parent
    }
    if (all_ == nullptr)
        close_fd(control_);
    control_ = -1;
    retry_ms_ = 0;
    figures_ = {};
}

} // namespace ntb::socket
