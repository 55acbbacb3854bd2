// SPDX-License-Identifier: BSD-3-Clause
#include "network/segments.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <unistd.h>

#include "locked.hpp"

namespace ntb::verbs
{
namespace
{

// What the kernel thinks that a program could take. 0: it does not say.
std::uint64_t find_available()
{
    const int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    char text[2048];
    const ssize_t got = read(file, text, sizeof(text) - 1);
    close(file);
    text[got > 0 ? got : 0] = '\0';
    constexpr char name[] = "MemAvailable:";
    const char *const line = strstr(text, name);
    return line ? strtoull(line + strlen(name), nullptr, 10) * 1024 : 0;
}

} // namespace

class ClientSegments::Held final : public Segment
{
public:
    Held(ClientSegments &keeper, ntbclient_segment *handle, const ntbclient_segment_info &info,
         bool is_own)
        : Segment(static_cast<std::byte *>(info.data), info.bytes, info.fd), keeper_(keeper),
          handle_(handle), is_own_(is_own)
    {
    }
    ~Held() override { keeper_.retire(handle_, is_own_); }
    ntbclient_segment *handle() const { return handle_; }

private:
    ClientSegments &keeper_;
    ntbclient_segment *handle_;
    bool is_own_;
};

ClientSegments::~ClientSegments()
{
    pthread_mutex_destroy(&mutex_);
}

void ClientSegments::end()
{
    destroy_gone();
    const Locked locked(mutex_);
    client_ = nullptr;
}

void ClientSegments::retire(ntbclient_segment *handle, bool is_own)
{
    {
        const Locked locked(mutex_);
        if (client_) // else it has gone with the client
            gone_.push_back(handle);
    }
    more_ += is_own;
    service_.wake();
}

void ClientSegments::destroy_gone()
{
    for (;;) {
        ntbclient_segment *handle = nullptr;
        {
            const Locked locked(mutex_);
            if (gone_.empty())
                return;
            handle = gone_.back();
            gone_.pop_back();
        }
        ntbclient_segment_destroy(handle);
    }
}

std::shared_ptr<Segment> ClientSegments::hold(ntbclient_segment *handle, bool is_own,
                                              bool &writable)
{
    ntbclient_segment_info info = {};
    info.size = sizeof(info);
    ntbclient_segment_info_get(handle, &info);
    writable = info.writable != 0;
    auto *const held = new (std::nothrow) Held(*this, handle, info, is_own);
    if (held)
        return std::shared_ptr<Segment>(held);
    ntbclient_segment_destroy(handle);
    errno = ENOMEM;
    return nullptr;
}

std::shared_ptr<Segment> ClientSegments::create(std::uint64_t bytes)
{
    destroy_gone(); // what is charged for it may be wanted here
    int error = -EDQUOT;
    if (more_.fetch_sub(1) > 0 && bytes <= find_available() / 2) {
        ntbclient_segment *handle = nullptr;
        bool writable = false;
        error = ntbclient_segment_create(client_, bytes, &handle);
        if (error == 0)
            if (std::shared_ptr<Segment> segment = hold(handle, true, writable))
                return segment;
    }
    ++more_;
    errno = -error;
    return nullptr;
}

std::uint64_t ClientSegments::grant(ntbclient_conn *conn, const Segment &segment, bool writable)
{
    std::uint64_t number = 0;
    const int error = ntbclient_segment_grant(conn, static_cast<const Held &>(segment).handle(),
                                              writable ? NTBCLIENT_SEGMENT_WRITABLE : 0, &number);
    return error == 0 ? number : 0;
}

std::shared_ptr<Segment> ClientSegments::open(ntbclient_conn *conn, std::uint64_t number,
                                              bool &writable)
{
    ntbclient_segment *handle = nullptr;
    return ntbclient_segment_open(conn, number, &handle) == 0 ? hold(handle, false, writable)
                                                              : nullptr;
}

} // namespace ntb::verbs
