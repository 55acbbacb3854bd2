// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/links.hpp"

#include <algorithm>
#include <cstring>

#include "kernel/memory.hpp"

namespace ntb::socket
{

Links::~Links()
{
    for (Chunk *chunk : chunks_)
        kernel::unmap(chunk, 1);
    for (Numbers *page : numbers_)
        kernel::unmap(page, 1);
    kernel::unmap(hot_, hot_room_);
}

Link *Links::find(int fd)
{
    const auto number = static_cast<std::uint32_t>(fd);
    if (fd < 0 || number / page_numbers >= pages || numbers_[number / page_numbers] == nullptr)
        return nullptr;
    const std::uint32_t index = numbers_[number / page_numbers]->link[number % page_numbers];
    return index == 0 ? nullptr : at(index - 1);
}

void Links::enter(int fd, std::uint32_t index)
{
    const auto number = static_cast<std::uint32_t>(fd);
    numbers_[number / page_numbers]->link[number % page_numbers] = index;
}

// Room for one link more, also among those to look at.
bool Links::grow()
{
    if (made_ == chunks * chunk_links)
        return false;
    Chunk *&chunk = chunks_[made_ / chunk_links];
    if (chunk == nullptr && (chunk = kernel::map<Chunk>(1, MAP_PRIVATE)) == nullptr)
        return false;
    if (made_ < hot_room_)
        return true;
    const std::uint32_t room = std::max(2 * hot_room_, chunk_links);
    auto *hot = kernel::map<std::uint32_t>(room, MAP_PRIVATE);
    if (hot == nullptr)
        return false;
    if (hot_count_ > 0)
        std::memcpy(hot, hot_, hot_count_ * sizeof *hot_);
    kernel::unmap(hot_, hot_room_);
    hot_ = hot;
    hot_room_ = room;
    return true;
}

Link *Links::make(int fd)
{
    const auto number = static_cast<std::uint32_t>(fd);
    if (fd < 0 || number / page_numbers >= pages)
        return nullptr;
    Numbers *&page = numbers_[number / page_numbers];
    if (page == nullptr && (page = kernel::map<Numbers>(1, MAP_PRIVATE)) == nullptr)
        return nullptr;
    std::uint32_t index = free_;
    if (index == Link::none) {
        if (!grow())
            return nullptr;
        index = made_++;
    } else {
        free_ = at(index)->next_free;
    }
    any_.store(true, std::memory_order_relaxed);
    Link *link = at(index);
    const auto generation = static_cast<std::uint16_t>(link->generation + 1);
    *link = {};
    link->index = index;
    link->generation = generation;
    link->fd = fd;
    link->hot = Link::none;
    link->used = true;
    enter(fd, index + 1);
    return link;
}

void Links::release(Link &link)
{
    link.used = false;
    link.source = nullptr;
    link.next_free = free_;
    free_ = link.index;
}

} // namespace ntb::socket
