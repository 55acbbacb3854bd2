// SPDX-License-Identifier: BSD-3-Clause
// The client library in a process that has no CPU for longer than it would wait for an answer.
#include "hosts.hpp"
#include "ntbclient.h"
#include "wire/message.hpp"

#include <cerrno>
#include <ctime>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace
{

/// A daemon that answers whenever the client looks at its clock, an hour before the client sees it.
class Daemon
{
public:
    Daemon() = default;
    ~Daemon()
    {
        close(client_);
        close(listener_);
    }
    Daemon(const Daemon &) = delete;
    Daemon &operator=(const Daemon &) = delete;

    void look()
    {
        if (client_ < 0)
            client_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (refuses_in_ > 0 && --refuses_in_ == 0) {
            ntbc::Message refusal;
            refusal.type = ntbc::Type::failed;
            refusal.id = 1;
            refusal.status = -ECONNREFUSED;
            hours++;
            EXPECT_EQ(message_send(client_, refusal), 0);
            return;
        }
        ntbc::Parcel request;
        if (client_ < 0 || message_receive(client_, &request) != ntbc::Received::message)
            return;
        hours++;
        ntbc::Message answer;
        answer.type = ntbc::Type::answer;
        answer.request = request.message.request;
        answer.id = 1;
        EXPECT_EQ(message_send(client_, answer), 0);
        if (request.message.type == ntbc::Type::connect)
            refuses_in_ = 2; // once the client has looked when its wait begins
    }

    const ntbd::test::Folder folder;
    const std::string path = folder.path + "/socket";
    time_t hours = 0;

private:
    const int listener_ = ntbd::test::listen_at(path, SOCK_NONBLOCK);
    int client_ = -1;
    int refuses_in_ = 0;
};

thread_local Daemon *daemon_of_this_thread = nullptr;

} // namespace

// In place of the C library's, for the whole program; other threads see the time as it is.
extern "C" int clock_gettime(clockid_t clock, timespec *now) noexcept
{
    const auto status = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
    if (Daemon *const daemon = daemon_of_this_thread; daemon != nullptr) {
        daemon_of_this_thread = nullptr; // what it calls may ask for the time
        daemon->look();
        daemon_of_this_thread = daemon;
        now->tv_sec += daemon->hours * 3600;
    }
    return status;
}

namespace
{

TEST(StarvedClient, TakesAnAnswerThatIsThereWhateverTheTime)
{
    Daemon daemon;
    ntbclient *client = nullptr;
    daemon_of_this_thread = &daemon;
    const int attached = ntbclient_attach(daemon.path.c_str(), &client);
    ntbclient_conn *conn = nullptr;
    const int connects =
        attached == 0 ? ntbclient_connect(client, "name", nullptr, &conn) : attached;
    const int ready = connects == 0 ? ntbclient_wait(conn, NTBCLIENT_WRITABLE, 5000) : connects;
    daemon_of_this_thread = nullptr;
    EXPECT_EQ(attached, 0);
    EXPECT_EQ(connects, 0);
    EXPECT_EQ(ready, int{NTBCLIENT_WRITABLE});
    EXPECT_EQ(daemon.hours, 3);
    ntbclient_close(conn);
    ntbclient_detach(client);
}

} // namespace
