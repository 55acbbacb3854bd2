// SPDX-License-Identifier: BSD-3-Clause
#include "preload/attach.hpp"

#include "kernel/lock.hpp"
#include "preload/state.hpp"

#include <cstring>
#include <new>
#include <string_view>

namespace ntb::socket::preload
{

namespace
{
std::atomic<Attachment *> the_attachment;
char attached_path[Config::max_path];
std::atomic<int> control_hidden = -1;
Lock attach_lock;
} // namespace

Attachment *attachment()
{
    return the_attachment.load(std::memory_order_acquire);
}

Attachment *attachment_of(const char *path)
{
    Attachment *at = attachment();
    if (at == nullptr) {
        const Locked locked(attach_lock);
        at = attachment();
        if (at == nullptr && (at = Attachment::create(path)) != nullptr) {
            std::string_view(path).copy(attached_path, sizeof(attached_path) - 1);
            the_attachment.store(at, std::memory_order_release);
        }
    }
    return at != nullptr && strcmp(path, attached_path) == 0 ? at : nullptr;
}

void attach_early()
{
    Attachment *at = attachment();
    if (const char *path = state.config.first_daemon(); at == nullptr && path != nullptr)
        at = attachment_of(path);
    if (at == nullptr)
        return;
    at->connect();
    hide_control();
}

// What the connection's code has opened may not be closed by the program.
void hide_control()
{
    const Attachment *at = attachment();
    const int now = at == nullptr ? -1 : at->descriptor(), before = control_hidden.exchange(now);
    if (now == before)
        return;
    if (before >= 0)
        state.table.show(before);
    if (now >= 0)
        state.table.hide(now);
}

void attach_before_fork()
{
    attach_lock.take();
    if (Attachment *at = attachment(); at != nullptr)
        at->before_fork();
}

void attach_after_fork_in_parent(pid_t child)
{
    if (Attachment *at = attachment(); at != nullptr)
        at->after_fork_in_parent(child);
    attach_lock.give();
}

void attach_after_fork_in_child()
{
    if (Attachment *at = attachment(); at != nullptr)
        at->after_fork_in_child();
    new (&attach_lock) Lock;
    hide_control();
}

} // namespace ntb::socket::preload
