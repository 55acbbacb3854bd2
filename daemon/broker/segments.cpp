// SPDX-License-Identifier: BSD-3-Clause
#include "broker/segments.hpp"

#include "wire/sealed.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <iterator>
#include <string>
#include <unistd.h>

namespace ntbd
{

using ntbc::Message;
using ntbc::Type;

/// The memory file, while its owner has it. Its pages are taken by the clients, so that the system
/// counts them as theirs and no large one holds the daemon up.
class Segments::File
{
public:
    File(int fd, uint64_t bytes) : fd_(fd), bytes_(bytes) {}
    ~File() { end(); }
    File(const File &) = delete;
    File &operator=(const File &) = delete;

    uint64_t bytes() const { return bytes_; }
    bool has_ended() const { return fd_ < 0; }
    int fd() const { return fd_; }
    /// Never waits, also where a client of the daemon's user has taken a lease of the file.
    /// @return a descriptor, the caller's, or a negative errno
    int open(bool writable)
    {
        const std::string path = "/proc/self/fd/" + std::to_string(fd_);
        const int opened =
            ::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
        was_opened_ = was_opened_ || opened >= 0;
        return opened < 0 ? -errno : opened;
    }
    /// Who still maps it finds zeros.
    void end()
    {
        if (fd_ < 0)
            return;
        if (was_opened_)
            fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                      static_cast<off_t>(bytes_));
        close(fd_);
        fd_ = -1;
    }

private:
    int fd_;
    uint64_t bytes_;
    bool was_opened_ = false;
};

namespace
{
// The client library takes a daemon for dead that does not answer for five seconds.
constexpr int64_t answer_within_ms = 2000;

int refusal(int error)
{
    return error == -EMFILE || error == -ENFILE ? -EMFILE : -ENOMEM;
}
} // namespace

void Segments::answer(ClientId client, const Message &request, int status, uint64_t id,
                      uint64_t bytes, int fd)
{
    Message m;
    m.type = Type::answer;
    m.request = request.request;
    m.status = status;
    m.id = id;
    m.other = bytes;
    outbox_.to_client(client, m, fd >= 0 ? &fd : nullptr, fd >= 0 ? 1 : 0);
}

void Segments::make(ClientId client, const User &user, const Message &m)
{
    const uint64_t bytes = m.id;
    if (!ntbc::is_segment_size(bytes)) {
        answer(client, m, -EINVAL);
        return;
    }
    if (!accounts_.take_segment(user.uid, bytes)) {
        answer(client, m, -EDQUOT);
        return;
    }
    const int fd = ntbc::sealed_create("ntbd-segment", bytes);
    if (fd < 0) {
        accounts_.give_segment(user.uid, bytes);
        answer(client, m, refusal(fd));
        return;
    }
    const uint64_t id = ++last_id_;
    handles_[{client, id}] = {std::make_shared<File>(fd, bytes), bytes, user.uid, 0};
    answer(client, m, 0, id, bytes, fd);
}

Segments::Handles::iterator Segments::remove(Handles::iterator at)
{
    const Handle &handle = at->second;
    if (handle.end == 0)
        handle.file->end();
    accounts_.give_segment(handle.uid, handle.bytes);
    return handles_.erase(at);
}

void Segments::end(ClientId client, uint64_t id)
{
    if (const auto found = handles_.find({client, id}); found != handles_.end())
        remove(found);
}

// Those of segments that have ended make room.
bool Segments::has_room(uint64_t end)
{
    uint32_t count = 0;
    for (auto at = grants_.lower_bound({end, 0}); at != grants_.end() && at->first.first == end;) {
        if (at->second.file->has_ended()) {
            at = grants_.erase(at);
        } else {
            count++;
            ++at;
        }
    }
    return count < grants_max;
}

void Segments::grant(ClientId client, const Message &m, int status)
{
    const auto found = handles_.find({client, m.other});
    if (status == 0 && (m.flags & ~ntbc::flag_writable) != 0)
        status = -EINVAL;
    else if (status == 0 && (found == handles_.end() || found->second.end != 0))
        status = -ENOENT;
    else if (status == 0 && !has_room(m.id))
        status = -EDQUOT;
    if (status != 0) {
        answer(client, m, status);
        return;
    }
    const uint64_t number = ++last_id_;
    grants_[{m.id, number}] = {found->second.file, (m.flags & ntbc::flag_writable) != 0};
    answer(client, m, 0, number);
}

void Segments::ungrant(ClientId client, const Message &m, int status)
{
    if (status == 0 && grants_.erase({m.id, m.other}) == 0)
        status = -ENOENT;
    answer(client, m, status);
}

void Segments::open(ClientId client, const User &user, const Message &m, uint64_t peer, int status)
{
    const auto found = grants_.find({peer, m.other});
    if (status == 0 && (found == grants_.end() || found->second.file->has_ended()))
        status = -ENOENT;
    if (status != 0) {
        answer(client, m, status);
        return;
    }
    const Grant &grant = found->second;
    const int fd = grant.file->open(grant.writable);
    hand_out(client, user, m, grant.file, grant.file->bytes(), fd);
    if (fd >= 0)
        close(fd);
}

/// @param fd stays the caller's; or why there is none
void Segments::hand_out(ClientId client, const User &user, const Message &m,
                        const std::shared_ptr<File> &file, uint64_t bytes, int fd)
{
    int status = fd < 0 ? refusal(fd) : 0;
    if (status == 0 && !accounts_.take_segment(user.uid, bytes))
        status = -EDQUOT;
    if (status != 0) {
        answer(client, m, status);
        return;
    }
    const uint64_t id = ++last_id_;
    handles_[{client, id}] = {file, bytes, user.uid, m.id};
    answer(client, m, 0, id, bytes, fd);
}

// ---- with the peer's daemon

void Segments::ask(ClientId client, const User &user, const Message &m, uint64_t remote,
                   int64_t now_ms)
{
    if (questions_.count(client) != 0) {
        answer(client, m, -EBUSY);
        return;
    }
    const uint32_t number = ++last_question_;
    questions_[client] = {number, user, m, now_ms + answer_within_ms};
    Message question;
    question.type = Type::find_segment;
    question.request = number;
    question.id = remote;
    question.other = m.other;
    outbox_.to_peer(question, nullptr, 0);
}

void Segments::find(const Message &m, int status)
{
    const auto found = grants_.find({m.id, m.other});
    if (status == 0 && (found == grants_.end() || found->second.file->has_ended()))
        status = -ENOENT;
    const int fd = status == 0 ? found->second.file->open(found->second.writable) : -1;
    Message reply;
    reply.type = Type::segment_found;
    reply.request = m.request;
    reply.status = status != 0 ? status : fd < 0 ? refusal(fd) : 0;
    reply.other = fd >= 0 ? found->second.file->bytes() : 0;
    outbox_.to_peer(reply, fd >= 0 ? &fd : nullptr, fd >= 0 ? 1 : 0);
    if (fd >= 0)
        close(fd);
}

// Of a question that no client waits for any more it is no error.
bool Segments::found(ntbc::Parcel *parcel)
{
    const Message &m = parcel->message;
    const bool is_there = m.status == 0;
    if (m.status > 0 || parcel->count != (is_there ? 1 : 0) ||
        (is_there &&
         (!ntbc::is_segment_size(m.other) || !ntbc::sealed_check(parcel->fd(0), m.other))))
        return false;
    for (auto at = questions_.begin(); at != questions_.end(); ++at) {
        if (at->second.number != m.request)
            continue;
        if (is_there)
            hand_out(at->first, at->second.user, at->second.request, nullptr, m.other,
                     parcel->fd(0));
        else
            answer(at->first, at->second.request, m.status);
        questions_.erase(at);
        break;
    }
    return true;
}

void Segments::give_up(Questions::iterator at, int status)
{
    const Question question = at->second;
    const ClientId client = at->first;
    questions_.erase(at);
    answer(client, question.request, status);
}

void Segments::peer_down()
{
    while (!questions_.empty())
        give_up(questions_.begin(), -ECONNRESET);
}

int64_t Segments::next_deadline() const
{
    int64_t next = INT64_MAX;
    for (const auto &[_, question] : questions_)
        next = std::min(next, question.deadline_ms);
    return next;
}

void Segments::expire(int64_t now_ms)
{
    for (auto at = questions_.begin(); at != questions_.end();) {
        const auto late = at++;
        if (late->second.deadline_ms <= now_ms)
            give_up(late, -ETIMEDOUT);
    }
}

void Segments::drop_grants(uint64_t end)
{
    grants_.erase(grants_.lower_bound({end, 0}), grants_.lower_bound({end + 1, 0}));
}

template <typename Which>
void Segments::remove_of(ClientId client, Which which)
{
    for (auto at = handles_.lower_bound({client, 0});
         at != handles_.end() && at->first.first == client;)
        at = which(at->second) ? remove(at) : std::next(at);
}

void Segments::end_closed(ClientId client, uint64_t end)
{
    if (const auto asked = questions_.find(client);
        asked != questions_.end() && asked->second.request.id == end)
        give_up(asked, -ECONNRESET);
    drop_grants(end);
    remove_of(client, [end](const Handle &handle) { return handle.end == end; });
}

void Segments::detach(ClientId client)
{
    questions_.erase(client);
    remove_of(client, [](const Handle &) { return true; });
}

uint64_t Segments::bytes_at(ClientId client, uint64_t end) const
{
    uint64_t bytes = 0;
    for (auto at = handles_.lower_bound({client, 0});
         at != handles_.end() && at->first.first == client; ++at)
        if (at->second.end == end)
            bytes += at->second.bytes;
    return bytes;
}

} // namespace ntbd
