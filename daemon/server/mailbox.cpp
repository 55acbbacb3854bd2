// SPDX-License-Identifier: BSD-3-Clause
#include "server/mailbox.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

namespace ntbd
{

Mailbox::Mailbox() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Mailbox::~Mailbox()
{
    close(fd_);
}

void Mailbox::put(const LinkNews &news)
{
    const std::lock_guard held(lock_);
    news_.push_back(news);
    eventfd_write(fd_, 1);
}

size_t Mailbox::size()
{
    const std::lock_guard held(lock_);
    return news_.size();
}

std::optional<LinkNews> Mailbox::take()
{
    const std::lock_guard held(lock_);
    if (news_.empty()) {
        eventfd_t none;
        eventfd_read(fd_, &none);
        return {};
    }
    const LinkNews first = news_.front();
    news_.pop_front();
    return first;
}

} // namespace ntbd
