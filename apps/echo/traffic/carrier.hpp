// SPDX-License-Identifier: BSD-3-Clause
// The channels of the harness: a worker of the library, driven by one lcore, whose channels are
// connected, or accepted, and again after each loss.
#ifndef ECHO_TRAFFIC_CARRIER_HPP
#define ECHO_TRAFFIC_CARRIER_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "traffic/forwarder.hpp"

namespace echo
{

/// The port that the side which does not connect listens on.
inline constexpr uint16_t channel_port = 7;
inline constexpr uint64_t most_channels = 1024;

/// Channel i of one host is channel i of the other: its number travels with the connect.
class Carrier final : public Pollable
{
public:
    /// @param endpoint  has one worker if there are channels
    /// @param credit_bytes  of each channel
    /// @param connects  this side connects, the other one listens
    Carrier(ntbmsg_endpoint *endpoint, uint64_t channels, uint32_t credit_bytes, bool connects);
    /// Closes all channels. No lcore drives it any more.
    ~Carrier() override;

    /// @return empty, or one line that says why it cannot listen
    std::string listen();

    /// Where the handle of channel @p i is, NULL while there is none.
    ntbmsg_channel *const *handle(size_t i) const { return &slots_[i].handle; }
    /// To be called when channel @p i ends. Only while no lcore drives it.
    void attach(size_t i, Forwarder *forwarder) { slots_[i].forwarder = forwarder; }

    void poll() override;

    // On the lcore that drives it:
    /// Where channel @p i stands, in words.
    std::string state(size_t i) const;
    bool all_open() const;

private:
    struct Slot {
        ntbmsg_channel *handle = nullptr;
        Forwarder *forwarder = nullptr;
        unsigned ended_looks = 0; ///< how often it was seen ended
        uint64_t next_try = 0;    ///< TSC: not connected before
        const char *last = "not connected yet";
    };

    void look(Slot &slot, uint32_t number);
    void connect(Slot &slot, uint32_t number);
    void accept(const ntbmsg_request &request);
    void drop(Slot &slot);
    ntbmsg_channel_options options(const uint32_t &number) const;

    ntbmsg_worker *const worker_;
    const uint32_t credit_bytes_;
    const bool connects_;
    ntbmsg_listener *listener_ = nullptr;
    std::vector<Slot> slots_;
    unsigned rounds_ = 0;
};

} // namespace echo

#endif
