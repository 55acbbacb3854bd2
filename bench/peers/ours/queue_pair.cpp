// SPDX-License-Identifier: BSD-3-Clause
// Ours: a queue of an endpoint between two hosts on the software twin, by the public calls.
#include "mbufs/ways.hpp"
#include "peers/ours/own_endpoint.hpp"
#include "peers/pair/run.hpp"

namespace peers
{

namespace
{

class QueuePair : public OwnEndpoint
{
public:
    using Way = bench::QueueWay;
    static constexpr bool server_leaves_last = false;

    bool open(const Options &options, std::string &error)
    {
        return OwnEndpoint::open(options, 1, 0, error);
    }
    Way way() const { return {pool(), endpoint()}; }
    size_t max_message() const { return ntbmsg_endpoint_max_message(endpoint()); }
};

} // namespace

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::OwningLink<peers::QueuePair>>(argc, argv);
}
