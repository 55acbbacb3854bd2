// SPDX-License-Identifier: BSD-3-Clause
// The life of a connection: how two devices find each other, notice each other's end, and connect
// again. The rules are doc/wire-protocol.md, sections 2 and 3; the state machine is link/table.hpp.
// Pure logic: time, memory, chip and queues come through LinkDevice, so that a test drives it with
// its own clock.
#ifndef PLX_NTB_LINK_LINK_HPP
#define PLX_NTB_LINK_LINK_HPP

#include <cstddef>
#include <cstdint>

#include "link/table.hpp"
#include "queue/wire.hpp"

namespace plx::pmd
{

/// What the link needs from its device. Called from the control thread only.
class LinkDevice
{
public:
    virtual uint64_t now_us() = 0;
    virtual uint64_t random() = 0;
    /// Keeps the chip programmed. @return whether stores can reach a peer now
    /// @param why set to a constant text when they cannot
    virtual bool reachable(const char **why) = 0;
    /// Lets the peer write to the own block. @return 0 or negative errno
    virtual int open_window() = 0;
    /// Keeps new messages out of the sending halves. @return whether what was sent before has left
    /// this host; false: call again
    virtual bool end_sending() = 0;
    /// Messages sent and not confirmed, after end_sending().
    virtual uint64_t unconfirmed() = 0;
    /// Confirms to the peer what was received. @param received changes with each message
    /// @return whether all that had arrived was received
    virtual bool all_received(uint64_t *received) = 0;
    /// Keeps bursts out of the queues and counts unconfirmed messages. May be called again.
    /// @return false: a queue is inside a burst
    virtual bool quiesce() = 0;
    /// After quiesce(): revokes the peer's access to the own block, then takes the receive buffers
    /// out of the queues, and clears the peer's hello. @return false: not known to have taken
    /// effect, call again
    virtual bool fence() = 0;
    /// Tags the rings of the own block, to which no peer has access.
    virtual void prepare_rings(uint64_t pair_seed) = 0;
    /// Opens the queues. @param peer acceptable; @param own_seed, peer_seed pair seeds of the own
    /// and of the peer's block. @return 0 or negative errno
    virtual int open_queues(const wire::Hello &peer, uint64_t own_seed, uint64_t peer_seed) = 0;
    /// Copies of what the peer wrote into the own block.
    virtual wire::Hello read_hello() = 0;
    virtual uint64_t read_heartbeat() = 0;
    /// Changes when the connected peer has stored something else than a heartbeat. It need not
    /// notice each store.
    virtual uint64_t heard() = 0;
    /// Stores into the peer's block.
    virtual void write_hello(const wire::Hello &hello) = 0;
    virtual void write_heartbeat(uint64_t word) = 0;
    virtual void report(LinkEvent event) = 0;
    /// Logs why there is no connection, each time the reason changes.
    virtual void explain(const char *why) = 0;

protected:
    ~LinkDevice() = default;
};

struct LinkTimes {
    uint32_t silent_us = 50'000;
    uint32_t lost_us = 1'000'000;
    uint32_t beat_us = 10'000;
    /// A loss is reported after that even if a queue is inside a burst: its thread may have lost
    /// its CPU, and would look for the loss as soon as it has it again.
    uint32_t report_us = 2'000;
    /// Most time between two ticks that counts as silence of the peer: a machine or control thread
    /// that was stopped has not listened.
    uint32_t tick_max_us = 40'000;
    /// How long a receiver may take no message of a peer that has stopped before the rest is lost.
    uint32_t receive_us = 2'000'000;
};

/// Whether a hello is valid. torn: not written completely yet; refused: with a reason.
enum class Verdict { torn, acceptable, refused };
/// @param window_bytes size of our memory window; @param why set when refused
Verdict judge(const wire::Hello &hello, uint64_t window_bytes, const char **why);
/// Sets bytes, magic, version and CRC of an otherwise complete hello.
void seal(wire::Hello &hello);
/// Base of the tags in the block of the host with @p seed while it is exposed to @p epoch.
uint64_t pair_seed(uint64_t seed, uint32_t epoch);

class Link
{
public:
    explicit Link(LinkDevice &device) : device_(device) {}

    /// @param own geometry of the own block: qp_count to heartbeat_us and block_bytes are used
    /// @return 0 or the error of LinkDevice::open_window
    int start(const wire::Hello &own, uint64_t window_bytes, const LinkTimes &times);
    /// One control tick: at most every few milliseconds, at once when something is known to have
    /// changed. Never blocks.
    void tick();
    /// An orderly end, before stop(): sends no more messages, says so once all have left, and waits
    /// until the peer has confirmed them. @return false: it is over, or the peer confirms no more;
    /// true: call again, at most every few milliseconds
    bool linger();
    /// Sends hello(closing), ends the connection, reports that if it was connected. @return false:
    /// a queue is inside a burst, or the chip does not answer: call again
    bool stop();
    /// A queue found that the peer violates the protocol: ends the connection.
    void protocol_error() { protocol_error_ = true; }

    LinkState state() const { return state_; }
    /// Why it is not connected; "" when it is.
    const char *why() const { return why_; }
    const wire::Hello &peer() const { return peer_; } ///< of the connected peer
    uint64_t connects() const { return connects_; }

private:
    struct Found {
        LinkInput input;
        const char *why; ///< constant text, or pairs_text_
    };
    /// Looks the event up in the table: acts, goes to the next state, reports.
    void handle(const Found &found);
    bool act(LinkAction action, const Found &found);

    void try_connect();
    bool has_ended(const Found &found) const;
    void check_connection(const Found &found);
    void check_receivers();
    void leave();
    bool report_loss();
    Found classify(const wire::Hello &hello);
    const char *describe_pairs(const wire::Hello &hello);
    std::optional<Found> check_heartbeat(uint64_t now);
    void beat(uint64_t now);
    void send_heartbeat();

    bool begin(const char *why);
    bool adopt(const wire::Hello &hello);
    bool connect(const wire::Hello &hello);
    void lose();
    bool renew();
    void send_closing();

    void renew_epoch();
    void greet(uint32_t ack, wire::HelloState state);
    void set_why(const char *why);

    LinkDevice &device_;
    LinkTimes times_;
    wire::Hello own_{};
    wire::Hello hello_{}; ///< the last one that was read
    wire::Hello peer_{};
    char pairs_text_[112] = "";
    uint64_t window_bytes_ = 0;
    uint32_t max_message_ = 0; ///< as configured; the hello has the value for this peer
    LinkState state_ = LinkState::stopped;
    uint32_t adopted_ = 0; ///< the peer's epoch that the own block is prepared for
    uint64_t beat_ = 0;    ///< own count
    uint64_t seen_beat_ = 0;
    uint64_t heard_ = 0; ///< LinkDevice::heard() then
    uint64_t last_tick_us_ = 0;
    uint64_t unheard_us_ = 0; ///< time without a heartbeat
    uint64_t sent_at_us_ = 0;
    uint64_t lost_at_us_ = 0;
    uint64_t received_at_us_ = 0; ///< when the last message was received in the state closing
    uint64_t received_ = 0;       ///< LinkDevice::all_received() then
    uint64_t connects_ = 0;
    int begin_error_ = 0;
    bool used_ = false; ///< connected under this epoch: lines of it are in the peer's block
    bool protocol_error_ = false;
    bool closing_ = false; ///< hello(closing) goes out instead of hello(up)
    const char *why_ = "";
};

} // namespace plx::pmd

#endif
