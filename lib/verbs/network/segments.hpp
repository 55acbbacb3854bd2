// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_NETWORK_SEGMENTS_HPP
#define NTB_VERBS_NETWORK_SEGMENTS_HPP

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <ntbclient.h>
#include <pthread.h>

#include "engine/service.hpp"
#include "port/segment.hpp"

namespace ntb::verbs
{

/// Segments of the node daemon. A call waits for its answer, so none is made under the engine's
/// mutex; what is destroyed there goes in a while, by destroy_gone().
class ClientSegments final : public Segments
{
public:
    /// @param service  is woken where destroy_gone() has something to do
    explicit ClientSegments(Service &service) : service_(service) {}
    ~ClientSegments() override;

    /// Before any other call.
    void begin(ntbclient *client) { client_ = client; }
    /// The client is about to detach: nothing more of it is used. No segment is there any more.
    void end();

    /// At most half of the memory that the machine has left, as the memory that it takes the place
    /// of is there meanwhile; 64 at a time.
    std::shared_ptr<Segment> create(std::uint64_t bytes) override;
    /// @return the grant's number; 0: refused
    std::uint64_t grant(ntbclient_conn *conn, const Segment &segment, bool writable);
    /// @return NULL: refused
    std::shared_ptr<Segment> open(ntbclient_conn *conn, std::uint64_t number, bool &writable);
    void destroy_gone();

private:
    class Held;

    std::shared_ptr<Segment> hold(ntbclient_segment *handle, bool is_own, bool &writable);
    void retire(ntbclient_segment *handle, bool is_own);

    Service &service_;
    ntbclient *client_ = nullptr;
    // Each has a descriptor of those that the program may have.
    std::atomic<int> more_{64};
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER; // of what follows
    std::vector<ntbclient_segment *> gone_;
};

} // namespace ntb::verbs

#endif
