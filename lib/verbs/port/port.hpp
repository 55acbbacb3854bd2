// SPDX-License-Identifier: BSD-3-Clause
// The way to one peer engine: doc/verbs.md, section 2.
#ifndef NTB_VERBS_PORT_PORT_HPP
#define NTB_VERBS_PORT_PORT_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <sys/uio.h>

#include "ntbv.h"
#include "port/lane.hpp"
#include "port/segment.hpp"

namespace ntb::verbs
{

/// Messages to and from one peer engine, in order, each once. All calls of one end are made under
/// one lock of its user.
class Port
{
public:
    struct Incoming {
        const std::byte *data; ///< the peer may still change it
        std::uint32_t bytes;
        bool more = true; ///< behind it; false: none that is known
        bool held = true; ///< false: release() has nothing to do, and need not be called
    };

    virtual ~Port() = default;
    /// Bytes of the longest message, the same at both ends.
    virtual std::uint32_t longest() const = 0;
    /// Data of at most so many bytes are not divided but for longest().
    static constexpr std::uint32_t undivided = 4096;
    /// How many bytes the next message of data that can be divided had better have: at most
    /// `bytes`, which are more than `undivided`, and more than a header.
    virtual std::uint32_t suitable(std::uint32_t bytes) { return bytes; }
    /// Room for one message, aligned to 8, until commit(). NULL: full, or the peer is gone. The
    /// peer may see what is put there, and change it.
    virtual std::byte *reserve(std::uint32_t bytes) = 0;
    /// Sends the first `bytes` of what was reserved. The peer may see it with publish() only.
    void commit(std::uint32_t bytes) { commit(bytes, nullptr, 0); }
    /// The same, with these parts behind them: together no more than was reserved.
    virtual void commit(std::uint32_t bytes, const iovec *parts, int n) = 0;
    static constexpr int max_parts = NTBV_MAX_SGE;
    /// Shows all that was sent, and rings if the peer sleeps. To be called before arm(), too.
    virtual void publish() = 0;
    /// Room for one message that goes alone, until placed(): as of reserve(). NULL: not now, and
    /// reserve() may have room.
    std::byte *place(std::uint32_t bytes)
    {
        std::byte *const room = lane_.room(lane::footprint(bytes));
        return room ? room : place_elsewhere(bytes);
    }
    /// One is about to be put together: asks for its first two lines, which the peer has, as it
    /// looks at the first. The next time that it looks it takes them away again, so not early
    /// (doc/decisions/077-the-lines-of-an-answer.md).
    void expect_lone() const
    {
        if (lane_.run < 2 * lane::line) [[unlikely]]
            return;
        lane::own(lane_.at);
        lane::own(lane_.at + lane::line);
    }
    /// Sends all that was reserved by place(), and shows it as publish() does.
    void placed(std::uint32_t bytes)
    {
        const std::size_t whole = lane::footprint(bytes);
        if (lane_.show(bytes, whole)) [[likely]]
            shown(whole);
        else
            show_otherwise(bytes);
    }
    /// The next message, until release(). What it is checked for is copied first.
    virtual bool receive(Incoming &message) = 0;
    virtual void release() = 0;
    /// The same of a short one, once watch() has seen a mark. @retval false receive() finds it
    bool receive_marked(Incoming &message)
    {
        const std::uint64_t prefix = lane::load_prefix(watch_.next); // once
        const auto bytes = static_cast<std::uint32_t>(prefix);
        const std::size_t wanted = lane::footprint(bytes);
        // Of what a peer says no more is believed than that it is within reach. The last one of a
        // ring has no mark.
        if (prefix >> 32 != lane::marked || wanted > 2 * lane::line || wanted >= inlet_.reach)
            [[unlikely]]
            return false;
        const std::byte *const data = watch_.next + sizeof(lane::Prefix);
        inlet_.pass(wanted);
        watch_.next += wanted;
        watch_.word = reinterpret_cast<const std::uint64_t *>(watch_.next);
        message = {data, bytes, false, inlet_.is_due()};
        return true;
    }
    /// What says that something has come: not that the peer is gone.
    struct Watch {
        const std::uint64_t *word = nullptr; ///< to be loaded atomically; NULL: only receive() says
        std::uint64_t seen = 0;              ///< what it is until something comes, if that is known
        const std::byte *next = nullptr;     ///< where most often that lies then; not NULL
        bool is_quiet() const
        {
            return std::atomic_ref(*const_cast<std::uint64_t *>(word))
                       .load(std::memory_order_relaxed) == seen;
        }
        /// Whether the word is where the next message begins.
        bool is_of_mark() const { return word == reinterpret_cast<const std::uint64_t *>(next); }
    };
    /// While no message is being received. Where it lies, and whether it has a word, stays the same
    /// as long as the port is there; which word that is may be another one behind each message.
    const Watch &watch() const { return watch_; }
    /// false: the peer is gone, for good.
    virtual bool alive() = 0;
    /// false: nothing that is sent arrives any more, though what has come may still be received.
    virtual bool reaches() { return alive(); }
    /// Ends it: both ends find the other one gone.
    virtual void close() = 0;
    /// Asks to be rung by the next message or the end, and with `for_room` when a message of any
    /// length can be reserved. @retval false that is so already: nothing is asked
    virtual bool arm(bool for_room) = 0;
    /// Withdraws arm(), and reads the bell.
    virtual void disarm() = 0;
    /// A descriptor that is readable when rung.
    virtual int bell() const = 0;
    /// Leaves a word for the peer in place of the one before, not 0. It finds the word whenever it
    /// looks, also once this process has ended.
    void leave(std::uint64_t word)
    {
        if (own_word_) // release: what it says was done before
            std::atomic_ref(*own_word_).store(word, std::memory_order_release);
        else
            leave_by_call(word);
    }
    /// What the peer has left, as it likes, until the port is destroyed. 0: nothing, or this
    /// carrier does not bring it.
    virtual std::uint64_t left() const { return 0; }

    // ---- memory that both ends reach. Nothing waits: what needs somebody else's answer comes
    // later, from who serves the engine.

    /// Instead of a number: Engine::granted() follows.
    static constexpr std::uint64_t later = ~std::uint64_t{0};
    /// From now on the peer may open that segment of this process.
    /// @return a number for the peer, or `later`; 0: this carrier cannot, or the quota is used up
    virtual std::uint64_t grant(const std::shared_ptr<Segment> & /* segment */, bool /* writable */)
    {
        return 0;
    }
    /// The peer cannot open it any more. What it has mapped stays. Not called where the segment
    /// goes: its grants go with it.
    virtual void revoke(std::uint64_t /* number */) {}
    struct Opening {
        std::shared_ptr<Segment> segment; ///< NULL: there is no such grant, or no one to ask
        bool writable = false;            ///< else it can be read only
        bool later = false;               ///< Engine::opened() follows
    };
    /// Maps what the peer has granted here under that number, which is what the peer says.
    virtual Opening open(std::uint64_t /* number */) { return {}; }

protected:
    Watch watch_; // kept by who receives
    // What lies behind watch_.next, and in front of it.
    struct Inlet {
        std::uint64_t seen = 0;     // what the count is in front of watch_.next
        std::size_t ring = 0;       // bytes
        std::size_t reach = 0;      // from watch_.next on to the ring's end; 0: unknown
        std::size_t held = 0;       // in front of watch_.next: not taken from the ring yet
        std::size_t unreturned = 0; // taken, and less than a quarter

        bool is_due() const { return held + unreturned >= ring / 4; }
        void pass(std::size_t wanted)
        {
            held += wanted; // until release() nothing is given back
            seen += wanted;
            reach -= wanted;
        }
    };
    Inlet inlet_; // of who finds messages by their marks
    Lane lane_;   // of who lets lone ones be put into its ring
    // Of place(), for which that has no room.
    virtual std::byte *place_elsewhere(std::uint32_t bytes) { return reserve(bytes); }
    // Of placed(): one of those bytes of the ring has its mark, and all else is to be done.
    virtual void shown(std::size_t /* whole */) {}
    // One that has no mark.
    virtual void show_otherwise(std::uint32_t bytes)
    {
        commit(bytes);
        publish();
    }
    // Of a port without own_word_.
    virtual void leave_by_call(std::uint64_t /* word */) {}
    std::uint64_t *own_word_ = nullptr; // that the peer finds
};

} // namespace ntb::verbs

#endif
