// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_READINESS_LINKS_HPP
#define NTB_SOCKET_READINESS_LINKS_HPP

#include <atomic>
#include <cstdint>

#include "readiness/source.hpp"

namespace ntb::socket
{

/// A registration: (file, number), as the kernel has them.
struct Link {
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    Source *source;     ///< NULL: the kernel's alone, or free
    std::uint64_t data; ///< the program's
    std::uint64_t reported_in, reported_out;
    std::uint64_t passed_in, passed_out; ///< as last shown to who has the set as a member
    std::uint64_t arrived_at;            ///< when that came which was reported last
    std::uint64_t looked_in;             ///< arrivals at the last look
    std::uint64_t signs;         ///< before the last look, which had nothing to report; else 0
    std::uint32_t events;        ///< the program's
    std::uint32_t reported_ends; ///< RDHUP, HUP and ERR as last reported
    std::uint32_t hot;           ///< where among those to look at, or none
    std::uint32_t armed_for;
    std::uint32_t reported_by; ///< number of the call that reported it last
    std::uint32_t index;
    std::uint32_t next_free; ///< of one that is not used
    int fd;
    std::uint16_t generation;
    std::uint8_t idle;   ///< looks that had nothing
    std::uint8_t unseen; ///< times that its signs stood for a look
    bool used : 1;
    bool armed : 1;
    bool fresh : 1;    ///< added or modified: an event that is there is new
    bool off : 1;      ///< one-shot, reported
    bool removed : 1;  ///< by the program; the kernel still has our entry, for the next time
    bool orphan : 1;   ///< the number is closed, the file open
    bool asks_out : 1; ///< of the shadow
    bool has_bell : 1; ///< the bell's entry is this link's
    bool listed : 1;   ///< the kernel has or may have it, when last asked for all
    bool given : 1;    ///< and its entry is the program's
};

/// The registrations of a set: by index, by number, and those to look at; all others are armed, or
/// off. One thread at a time.
class Links
{
public:
    Links() = default;
    ~Links();
    Links(const Links &) = delete;
    Links &operator=(const Links &) = delete;

    /// Whether one was ever made in this process: until then no set knows any member.
    static bool any() { return any_.load(std::memory_order_relaxed); }

    /// Of those that were ever used: some are free.
    std::uint32_t made() const { return made_; }
    Link *at(std::uint32_t index)
    {
        return &chunks_[index / chunk_links]->links[index % chunk_links];
    }
    /// @return NULL: there is none
    Link *find(int fd);
    /// @return one for a number that has none; NULL: no memory, or the number is too high
    Link *make(int fd);
    /// The number is no longer this link's, which stays.
    void forget(int fd) { enter(fd, 0); }
    /// Its number, if it has one still, is forgotten already.
    void release(Link &link);

    std::uint32_t hot_count() const { return hot_count_; }
    Link *hot(std::uint32_t i) { return at(hot_[i]); }
    /// To be looked at, unless it is off or removed.
    void heat(Link &link)
    {
        if (link.hot != Link::none || link.off || link.removed)
            return;
        link.hot = hot_count_;
        link.idle = 0;
        hot_[hot_count_++] = link.index;
    }
    /// The last of those that are looked at takes its place.
    void cool(Link &link)
    {
        if (link.hot == Link::none)
            return;
        const std::uint32_t last = hot_[--hot_count_];
        hot_[link.hot] = last;
        at(last)->hot = link.hot;
        link.hot = Link::none;
    }

private:
    static inline std::atomic<bool> any_ = false;
    static constexpr std::uint32_t chunk_links = 256;
    static constexpr std::uint32_t chunks = 4096;
    static constexpr std::uint32_t page_numbers = 4096;
    static constexpr std::uint32_t pages = 1024;

    struct Chunk {
        Link links[chunk_links];
    };
    struct Numbers {
        std::uint32_t link[page_numbers]; ///< index + 1
    };

    void enter(int fd, std::uint32_t index);
    bool grow();

    std::uint32_t made_ = 0;
    std::uint32_t free_ = Link::none; ///< first of those that are free
    std::uint32_t hot_count_ = 0, hot_room_ = 0;
    std::uint32_t *hot_ = nullptr;
    Chunk *chunks_[chunks] = {};
    Numbers *numbers_[pages] = {};
};

} // namespace ntb::socket

#endif
