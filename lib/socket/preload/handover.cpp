// SPDX-License-Identifier: BSD-3-Clause
#include "preload/handover.hpp"

#include "kernel/descriptors.hpp"
#include "kernel/shadow.hpp"
#include "kernel/system.hpp"
#include "preload/upgrade.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/auxv.h>

namespace ntb::socket::preload
{

namespace
{
// FAMILY NUMBER.PLACE... /PROGRAM: a descriptor of the family's memory, each connection's with its
// place, and the path that exec executes.
constexpr const char variable[] = "NTB_SOCKET_INHERITED";
constexpr int least_looked_at = 64; // numbers, of a child of vfork()
constexpr std::size_t most_variables = 4096;

bool stays_open(int fd)
{
    const long flags = kernel::call(SYS_fcntl, fd, F_GETFD);
    return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

bool is_variable(const char *text)
{
    return strncmp(text, variable, sizeof(variable) - 1) == 0 && text[sizeof(variable) - 1] == '=';
}

template <typename F>
void for_each_number(F see)
{
    for (int fd = state.table.next(0, ~0u); fd >= 0;
         fd = state.table.next(static_cast<unsigned>(fd) + 1, ~0u))
        see(fd);
}

// As Body::leave_to_program(), but for bytes that are unread.
void leave_all_but_unread(Body &body, int fd)
{
    if (const Connection *one = body.claimed(); one != nullptr && one->has_ring())
        count(Reason::handed_on);
    body.leave(fd, true, true, Unread::Stay);
}

// Whether this program is the one that was meant (rule H7): another one may have been in between,
// which has passed descriptors and environment on, to several. It may have been looked for in PATH.
bool is_meant(const char *name)
{
    const auto *own = reinterpret_cast<const char *>(getauxval(AT_EXECFN));
    if (own == nullptr || *name == 0)
        return false;
    if (strchr(name, '/') != nullptr)
        return strcmp(name, own) == 0;
    const char *last = strrchr(own, '/');
    return last != nullptr && strcmp(name, last + 1) == 0;
}
} // namespace

// ---- the program that goes

Handover::Handover(const char *path, char *const *environment, Unread unread)
    : environment_(environment), unread_(unread)
{
    if (state.figures == nullptr || state.table.next(0, ~0u) < 0)
        return;
    KeepErrno keep;
    if (is_own_process())
        for_each_number([this](int fd) {
            if (stays_open(fd))
                look_at(fd, fd);
        });
    else
        look_beside_table();
    if (count_ > 0 && path != nullptr && environment != nullptr)
        make_variable(path);
}

// A child of vfork() has its parent's table, and has moved descriptors since.
void Handover::look_beside_table()
{
    int last = least_looked_at;
    for_each_number([&last](int fd) { last = std::max(last, fd); });
    for (int fd = 0; fd <= last; fd++) {
        const std::uint64_t cookie =
            !state.table.hidden(fd) && stays_open(fd) ? kernel::cookie_of(fd) : 0;
        int number = -1;
        if (cookie != 0)
            for_each_number([&number, cookie](int one) {
                if (const Object *object = state.table.find(one);
                    object != nullptr && object->cookie == cookie)
                    number = one;
            });
        if (number >= 0)
            look_at(fd, number);
    }
}

/// @param number  that the table knows it by
void Handover::look_at(int fd, int number)
{
    const Held held(number, Object::Kind::Connection);
    Body *body = held.body();
    if (body == nullptr)
        return;
    if (const int place = body->expect_program(); place >= 0)
        pass(fd, place);
    else if (unread_ == Unread::Reset)
        body->leave_to_program(fd);
    else
        leave_all_but_unread(*body, fd);
}

// Once for each connection, whatever numbers it has.
void Handover::pass(int fd, int place)
{
    int *const end = places_ + place_count_;
    if (std::find(places_, end, place) != end)
        family().at(place).expect_no_more();
    else if (place_count_ < most)
        places_[place_count_++] = place;
    if (count_ == most)
        return;
    numbers_[count_] = fd;
    number_places_[count_++] = place;
}

void Handover::make_variable(const char *path)
{
    std::size_t size = 0;
    const auto add = [this, &size](const char *format, auto... words) {
        const int more = snprintf(text_ + size, most_text - size, format, words...);
        size = more < 0 ? most_text : std::min(most_text, size + static_cast<std::size_t>(more));
    };
    descriptor_ = kernel::copy_for_exec(family_descriptor());
    if (descriptor_ < 0)
        return;
    add("%s=%d", variable, descriptor_);
    for (int i = 0; i < count_; i++)
        add(" %d.%d", numbers_[i], number_places_[i]);
    add(" =%s", path);
    while (environment_[variables_] != nullptr)
        variables_++;
    if (size < most_text && variables_ <= most_variables)
        return;
    kernel::call(SYS_close, descriptor_);
    descriptor_ = -1;
}

char *const *Handover::environment(char **room)
{
    if (descriptor_ < 0)
        return environment_;
    std::size_t n = 0;
    for (std::size_t i = 0; i < variables_; i++)
        if (!is_variable(environment_[i]))
            room[n++] = environment_[i];
    room[n++] = text_;
    room[n] = nullptr;
    return room;
}

Handover::~Handover()
{
    for (int i = 0; i < place_count_; i++)
        family().at(places_[i]).expect_no_more();
    if (descriptor_ >= 0)
        kernel::call(SYS_close, descriptor_);
}

// ---- the program that comes

Will::Will()
{
    const char *text = getenv(variable);
    text_[0] = 0;
    if (text == nullptr)
        return;
    if (strlen(text) < sizeof(text_))
        strcpy(text_, text);
    unsetenv(variable);
    // A program in between may have closed it, and have something else there.
    const long fd = strtol(text_, nullptr, 10);
    if (text_[0] != 0 && fd >= 0 && fd <= INT_MAX && Family::is_file(static_cast<int>(fd)))
        descriptor_ = static_cast<int>(fd);
}

Will::~Will()
{
    if (descriptor_ >= 0)
        kernel::call(SYS_close, descriptor_);
}

int Will::take_descriptor()
{
    const int fd = descriptor_;
    descriptor_ = -1;
    return fd;
}

void take_inheritance(Will &will)
{
    const char *name = strchr(will.text(), '=');
    if (name == nullptr || !is_meant(name + 1) || !adopt_family(will.take_descriptor()))
        return;
    char *rest = nullptr;
    strtol(will.text(), &rest, 10);
    while (*rest == ' ' && rest[1] != '=') {
        const long number = strtol(rest, &rest, 10);
        const long place = *rest == '.' ? strtol(rest + 1, &rest, 10) : -1;
        if (number < 0 || number > INT_MAX || place < 0 || place >= Family::most)
            return;
        const Family::Socket socket = family().socket_at(static_cast<int>(place));
        if (socket.cookie == 0 || kernel::cookie_of(static_cast<int>(number)) != socket.cookie)
            continue;
        int first = -1;
        for_each_number([&first, &socket](int one) {
            if (state.table.find(one)->cookie == socket.cookie)
                first = one;
        });
        if (first >= 0)
            state.table.copy(first, static_cast<int>(number));
        else
            inherited(static_cast<int>(number), socket.cookie, static_cast<int>(place));
    }
}

} // namespace ntb::socket::preload
