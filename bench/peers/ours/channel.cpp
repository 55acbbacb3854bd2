// SPDX-License-Identifier: BSD-3-Clause
// Ours: messages over a channel between two hosts on the software twin, by the public calls.
#include "mbufs/ways.hpp"
#include "peers/ours/own_channel.hpp"
#include "peers/pair/run.hpp"

namespace peers
{

namespace
{

class Channel : public OwnChannel
{
public:
    using Way = bench::ChannelWay;
    static constexpr bool server_leaves_last = false;

    bool open(const Options &options, std::string &error)
    {
        return OwnChannel::open(options, 0, error);
    }
    Way way() const { return {own().pool(), worker(), channel()}; }
    size_t room() const { return own().room(); }
    size_t max_message() const
    {
        ntbmsg_channel_info info = {};
        info.size = sizeof(info);
        return ntbmsg_channel_info_get(channel(), &info) == 0 ? info.max_message : 0;
    }
};

} // namespace

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::OwningLink<peers::Channel>>(argc, argv);
}
