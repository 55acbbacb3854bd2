// SPDX-License-Identifier: BSD-3-Clause
// Every function of ntbmsg.h with each of its arguments out of range: the answer that the header
// states, and nothing else happens. A function that is exported and has no row here fails.
#include "operating.hpp"

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <ntbmsg_test.h>

#include <sys/mman.h>

namespace
{

/// A call and what it has to give; a pointer counts as 1 if it is not NULL.
struct Row {
    const char *function;
    const char *argument;
    int64_t expected;
    std::function<int64_t()> call;
};

class Arguments : public Operating
{
protected:
    void SetUp() override
    {
        Operating::SetUp();
        region_ = serve(memory_, NTBMSG_RIGHT_WRITE | NTBMSG_RIGHT_ATOMIC);
        remote_ = open_remote(token_of(region_));
        ASSERT_EQ(ntbmsg_listener_open(port, 0, &listener_), 0);
        ASSERT_EQ(ntbmsg_poll_set_create(here_.worker, &set_), 0);
    }
    void TearDown() override
    {
        EXPECT_EQ(ntbmsg_poll_set_destroy(set_), 0);
        ntbmsg_listener_close(listener_);
        ntbmsg_remote_close(remote_);
        EXPECT_EQ(ntbmsg_region_release(region_), 0);
        Operating::TearDown();
    }
    static void check(const std::vector<Row> &rows)
    {
        for (const Row &row : rows)
            EXPECT_EQ(row.call(), row.expected) << row.function << ": " << row.argument;
    }

    std::vector<Row> of_endpoints()
    {
        return {
            {"endpoint_open", "device NULL", -EINVAL,
             [&] { return ntbmsg_endpoint_open(nullptr, nullptr, &endpoint_); }},
            {"endpoint_open", "out NULL", -EINVAL,
             [&] { return ntbmsg_endpoint_open(near_device, nullptr, nullptr); }},
            {"endpoint_open", "options.size", -EINVAL,
             [&] {
                 ntbmsg_endpoint_options o = small_options();
                 o.size = 8;
                 return ntbmsg_endpoint_open(near_device, &o, &endpoint_);
             }},
            {"endpoint_open", "no such device", -ENODEV,
             [&] { return ntbmsg_endpoint_open("raw_plx_ntb99", nullptr, &endpoint_); }},
            {"endpoint_open", "open already", -EBUSY,
             [&] { return ntbmsg_endpoint_open(near_device, nullptr, &endpoint_); }},
            {"endpoint_close", "NULL", 0, [&] { return ntbmsg_endpoint_close(nullptr); }},
            {"endpoint_close_linger", "NULL", 0,
             [&] { return ntbmsg_endpoint_close_linger(nullptr, 1000, nullptr); }},
            {"queue_unconfirmed", "endpoint NULL", -EINVAL,
             [&] { return ntbmsg_queue_unconfirmed(nullptr, 0, &count_); }},
            {"queue_unconfirmed", "queue", -EINVAL,
             [&] { return ntbmsg_queue_unconfirmed(near_, 0, &count_); }},
            {"queue_burst_get", "endpoint NULL", -EINVAL,
             [&] { return ntbmsg_queue_burst_get(nullptr, 0, &burst_); }},
            {"queue_burst_get", "queue", -EINVAL,
             [&] { return ntbmsg_queue_burst_get(near_, 0, &burst_); }},
            {"queue_reserve", "endpoint NULL", -EINVAL,
             [&] { return ntbmsg_queue_reserve(nullptr, 0, &room_, 1); }},
            {"queue_reserve", "queue", -EINVAL,
             [&] { return ntbmsg_queue_reserve(near_, 0, &room_, 1); }},
            {"queue_commit", "endpoint NULL", -EINVAL,
             [&] { return ntbmsg_queue_commit(nullptr, 0, &count_, nullptr, 1); }},
            {"queue_commit", "queue", -EINVAL,
             [&] { return ntbmsg_queue_commit(near_, 0, &count_, nullptr, 1); }},
            {"queue_abort", "endpoint NULL", -EINVAL,
             [&] { return ntbmsg_queue_abort(nullptr, 0); }},
            {"queue_abort", "queue", -EINVAL, [&] { return ntbmsg_queue_abort(near_, 0); }},
            {"queue_flush", "endpoint NULL", -EINVAL,
             [&] { return ntbmsg_queue_flush(nullptr, 0, 1000); }},
            {"queue_flush", "queue", -EINVAL, [&] { return ntbmsg_queue_flush(near_, 0, 1000); }},
            {"endpoint_options_init", "NULL", 0,
             [&] { return ntbmsg_endpoint_options_init(nullptr), 0; }},
            {"endpoint_wait_connected", "NULL", -EINVAL,
             [&] { return ntbmsg_endpoint_wait_connected(nullptr, 0); }},
            {"endpoint_link_state_get", "NULL", NTBMSG_LINK_WAITING,
             [&] { return ntbmsg_endpoint_link_state_get(nullptr); }},
            {"endpoint_link_reason_get", "endpoint NULL", -EINVAL,
             [&] { return ntbmsg_endpoint_link_reason_get(nullptr, text_, sizeof(text_)); }},
            {"endpoint_link_reason_get", "text NULL", -EINVAL,
             [&] { return ntbmsg_endpoint_link_reason_get(near_, nullptr, 1); }},
            {"endpoint_link_reason_get", "bytes 0", -EINVAL,
             [&] { return ntbmsg_endpoint_link_reason_get(near_, text_, 0); }},
            {"endpoint_max_message", "NULL", 0,
             [&] { return ntbmsg_endpoint_max_message(nullptr); }},
            {"endpoint_pool", "NULL", 0, [&] { return ntbmsg_endpoint_pool(nullptr) != nullptr; }},
            {"queue_send_burst", "endpoint NULL", -EINVAL,
             [&] { return ntbmsg_queue_send_burst(nullptr, 0, &mbuf_, nullptr, 1); }},
            {"queue_send_burst", "queue", -EINVAL,
             [&] { return ntbmsg_queue_send_burst(near_, 0, &mbuf_, nullptr, 1); }},
            {"queue_recv_burst", "endpoint NULL", -EINVAL,
             [&] { return ntbmsg_queue_recv_burst(nullptr, 0, &mbuf_, nullptr, 1); }},
            {"queue_recv_burst", "queue", -EINVAL,
             [&] { return ntbmsg_queue_recv_burst(near_, 0, &mbuf_, nullptr, 1); }},
            {"endpoint_event_poll", "endpoint NULL", -EINVAL,
             [&] { return ntbmsg_endpoint_event_poll(nullptr, &event_); }},
            {"endpoint_event_poll", "event NULL", -EINVAL,
             [&] { return ntbmsg_endpoint_event_poll(near_, nullptr); }},
            {"endpoint_stats_get", "endpoint NULL", -EINVAL,
             [&] { return ntbmsg_endpoint_stats_get(nullptr, &stats_); }},
            {"endpoint_stats_get", "stats NULL", -EINVAL,
             [&] { return ntbmsg_endpoint_stats_get(near_, nullptr); }},
            {"endpoint_stats_get", "size", -EINVAL,
             [&] { return ntbmsg_endpoint_stats_get(near_, &stats_); }},
            {"endpoint_dump", "endpoint NULL", -EINVAL,
             [&] { return ntbmsg_endpoint_dump(nullptr, stdout); }},
            {"endpoint_dump", "file NULL", -EINVAL,
             [&] { return ntbmsg_endpoint_dump(near_, nullptr); }},
            {"endpoint_worker", "endpoint NULL", 0,
             [&] { return ntbmsg_endpoint_worker(nullptr, 0) != nullptr; }},
            {"endpoint_worker", "index", 0,
             [&] { return ntbmsg_endpoint_worker(near_, 1) != nullptr; }},
            {"worker_poll", "NULL", -EINVAL, [&] { return ntbmsg_worker_poll(nullptr); }},
            {"worker_event_fd", "NULL", -EINVAL, [&] { return ntbmsg_worker_event_fd(nullptr); }},
            {"worker_arm", "NULL", -EINVAL, [&] { return ntbmsg_worker_arm(nullptr); }},
            {"worker_disarm", "NULL", -EINVAL, [&] { return ntbmsg_worker_disarm(nullptr); }},
            {"clock_set", "NULL", 0, [&] { return ntbmsg_clock_set(nullptr), 0; }},
            {"version", "none", NTBMSG_VERSION_MAJOR << 16 | NTBMSG_VERSION_MINOR,
             [&] { return ntbmsg_version(); }},
        };
    }

    /// A connect with one option out of range.
    Row connect_with(const char *what, const std::function<void(ntbmsg_channel_options &)> &spoil)
    {
        return {"channel_connect", what, -EINVAL, [this, spoil] {
                    ntbmsg_channel_options o = channel_options(here_);
                    spoil(o);
                    return ntbmsg_channel_connect(here_.worker, port, &o, &channel_);
                }};
    }
    std::vector<Row> of_connecting()
    {
        using O = ntbmsg_channel_options;
        return {
            {"listener_open", "port", -EINVAL,
             [&] { return ntbmsg_listener_open(0, 0, &other_listener_); }},
            {"listener_open", "backlog", -EINVAL,
             [&] { return ntbmsg_listener_open(port + 1, 4097, &other_listener_); }},
            {"listener_open", "out NULL", -EINVAL,
             [&] { return ntbmsg_listener_open(port + 1, 0, nullptr); }},
            {"listener_open", "taken", -EADDRINUSE,
             [&] { return ntbmsg_listener_open(port, 0, &other_listener_); }},
            {"listener_close", "NULL", 0, [&] { return ntbmsg_listener_close(nullptr), 0; }},
            {"listener_poll", "listener NULL", -EINVAL,
             [&] { return ntbmsg_listener_poll(nullptr, here_.worker, &request_); }},
            {"listener_poll", "worker NULL", -EINVAL,
             [&] { return ntbmsg_listener_poll(listener_, nullptr, &request_); }},
            {"listener_poll", "request NULL", -EINVAL,
             [&] { return ntbmsg_listener_poll(listener_, here_.worker, nullptr); }},
            {"channel_accept", "request NULL", -EINVAL,
             [&] { return ntbmsg_channel_accept(nullptr, nullptr, &channel_); }},
            {"channel_accept", "request.worker NULL", -EINVAL,
             [&] { return ntbmsg_channel_accept(&nobody_, nullptr, &channel_); }},
            {"channel_accept", "out NULL", -EINVAL,
             [&] { return ntbmsg_channel_accept(&request_, nullptr, nullptr); }},
            {"channel_accept", "options.size", -EINVAL,
             [&] {
                 const O o{};
                 return ntbmsg_channel_accept(&request_, &o, &channel_);
             }},
            {"channel_accept", "no such request", -ENOENT,
             [&] { return ntbmsg_channel_accept(&request_, nullptr, &channel_); }},
            {"request_reject", "request NULL", -EINVAL,
             [&] { return ntbmsg_request_reject(nullptr, 0, nullptr, 0); }},
            {"request_reject", "request.worker NULL", -EINVAL,
             [&] { return ntbmsg_request_reject(&nobody_, 0, nullptr, 0); }},
            {"request_reject", "reason", -EINVAL,
             [&] { return ntbmsg_request_reject(&request_, -1, nullptr, 0); }},
            {"request_reject", "data NULL", -EINVAL,
             [&] { return ntbmsg_request_reject(&request_, 0, nullptr, 1); }},
            {"request_reject", "bytes", -EINVAL,
             [&] { return ntbmsg_request_reject(&request_, 0, text_, NTBMSG_MAX_PRIVATE + 1); }},
            {"request_reject", "no such request", -ENOENT,
             [&] { return ntbmsg_request_reject(&request_, 0, nullptr, 0); }},
            {"channel_connect", "worker NULL", -EINVAL,
             [&] { return ntbmsg_channel_connect(nullptr, port, nullptr, &channel_); }},
            {"channel_connect", "port", -EINVAL,
             [&] { return ntbmsg_channel_connect(here_.worker, 0, nullptr, &channel_); }},
            {"channel_connect", "out NULL", -EINVAL,
             [&] { return ntbmsg_channel_connect(here_.worker, port, nullptr, nullptr); }},
            connect_with("size", [](O &o) { o.size = 8; }),
            connect_with("private_data NULL", [](O &o) { o.private_bytes = 1; }),
            connect_with("private_bytes",
                         [](O &o) {
                             o.private_data = &o;
                             o.private_bytes = NTBMSG_MAX_PRIVATE + 1;
                         }),
            connect_with("credit_messages low", [](O &o) { o.credit_messages = 3; }),
            connect_with("credit_messages high", [](O &o) { o.credit_messages = 65536; }),
            connect_with("operations", [](O &o) { o.operations = 4097; }),
            connect_with("operations without cq",
                         [](O &o) {
                             o.operations = 1;
                             o.cq = nullptr;
                         }),
            connect_with("send_depth", [](O &o) { o.send_depth = 65536; }),
            {"channel_connect", "set of another worker", -EINVAL,
             [&] {
                 O o = channel_options(there_);
                 o.set = set_;
                 return ntbmsg_channel_connect(there_.worker, port, &o, &channel_);
             }},
            {"channel_options_init", "NULL", 0,
             [&] { return ntbmsg_channel_options_init(nullptr), 0; }},
        };
    }

    std::vector<Row> of_channels()
    {
        ntbmsg_channel *c = here_.channel;
        return {
            {"channel_wait_open", "NULL", -EINVAL,
             [&] { return ntbmsg_channel_wait_open(nullptr, 0); }},
            {"channel_flush", "NULL", -EINVAL, [&] { return ntbmsg_channel_flush(nullptr, 0); }},
            {"channel_close_linger", "NULL", 0,
             [&] { return ntbmsg_channel_close_linger(nullptr, 1000, nullptr); }},
            {"channel_state_get", "NULL", NTBMSG_CHANNEL_CLOSED,
             [&] { return ntbmsg_channel_state_get(nullptr); }},
            {"channel_info_get", "channel NULL", -EINVAL,
             [&] { return ntbmsg_channel_info_get(nullptr, &info_); }},
            {"channel_info_get", "info NULL", -EINVAL,
             [=] { return ntbmsg_channel_info_get(c, nullptr); }},
            {"channel_info_get", "size", -EINVAL,
             [=, this] { return ntbmsg_channel_info_get(c, &info_); }},
            {"channel_shutdown", "NULL", -EINVAL, [&] { return ntbmsg_channel_shutdown(nullptr); }},
            {"channel_reset", "NULL", -EINVAL, [&] { return ntbmsg_channel_reset(nullptr, 0); }},
            {"channel_reset", "reason", -EINVAL, [=] { return ntbmsg_channel_reset(c, -1); }},
            {"channel_close", "NULL", 0, [&] { return ntbmsg_channel_close(nullptr); }},
            {"channel_send_burst", "channel NULL", -EINVAL,
             [&] { return ntbmsg_channel_send_burst(nullptr, &mbuf_, nullptr, 1); }},
            {"channel_send_burst", "mbufs NULL", -EINVAL,
             [=] { return ntbmsg_channel_send_burst(c, nullptr, nullptr, 1); }},
            {"channel_send_burst", "mbufs[0] NULL", -EINVAL,
             [=, this] { return ntbmsg_channel_send_burst(c, &mbuf_, nullptr, 1); }},
            {"channel_send_burst", "n 0", 0,
             [=, this] { return ntbmsg_channel_send_burst(c, &mbuf_, nullptr, 0); }},
            {"channel_reserve", "channel NULL", -EINVAL,
             [&] { return ntbmsg_channel_reserve(nullptr, &room_, 1); }},
            {"channel_reserve", "rooms NULL", -EINVAL,
             [=] { return ntbmsg_channel_reserve(c, nullptr, 1); }},
            {"channel_reserve", "n 0", 0,
             [=, this] { return ntbmsg_channel_reserve(c, &room_, 0); }},
            {"channel_commit", "channel NULL", -EINVAL,
             [&] { return ntbmsg_channel_commit(nullptr, &count_, nullptr, 1); }},
            {"channel_commit", "lengths NULL", -EINVAL,
             [=] { return ntbmsg_channel_commit(c, nullptr, nullptr, 1); }},
            {"channel_commit", "nothing reserved", -EINVAL,
             [=, this] { return ntbmsg_channel_commit(c, &count_, nullptr, 1); }},
            {"channel_abort", "channel NULL", -EINVAL,
             [&] { return ntbmsg_channel_abort(nullptr); }},
            {"channel_recv_burst", "channel NULL", -EINVAL,
             [&] { return ntbmsg_channel_recv_burst(nullptr, &mbuf_, nullptr, 1); }},
            {"channel_recv_burst", "mbufs NULL", -EINVAL,
             [=] { return ntbmsg_channel_recv_burst(c, nullptr, nullptr, 1); }},
            {"channel_recv_burst", "n 0", 0,
             [=, this] { return ntbmsg_channel_recv_burst(c, &mbuf_, nullptr, 0); }},
            {"poll_set_create", "out NULL", -EINVAL,
             [&] { return ntbmsg_poll_set_create(here_.worker, nullptr); }},
            {"poll_set_destroy", "NULL", 0, [&] { return ntbmsg_poll_set_destroy(nullptr); }},
            {"poll_set_poll", "set NULL", -EINVAL,
             [&] { return ntbmsg_poll_set_poll(nullptr, &ready_, 1); }},
            {"poll_set_poll", "ready NULL", -EINVAL,
             [&] { return ntbmsg_poll_set_poll(set_, nullptr, 1); }},
            {"poll_set_poll", "n 0", 0, [&] { return ntbmsg_poll_set_poll(set_, &ready_, 0); }},
            {"cq_create", "entries 0", -EINVAL,
             [&] { return ntbmsg_cq_create(0, nullptr, nullptr, &cq_); }},
            {"cq_create", "entries", -EINVAL,
             [&] { return ntbmsg_cq_create(65537, nullptr, nullptr, &cq_); }},
            {"cq_create", "out NULL", -EINVAL,
             [&] { return ntbmsg_cq_create(1, nullptr, nullptr, nullptr); }},
            {"cq_destroy", "NULL", 0, [&] { return ntbmsg_cq_destroy(nullptr); }},
            {"cq_destroy", "in use", -EBUSY, [&] { return ntbmsg_cq_destroy(here_.cq); }},
            {"cq_poll", "cq NULL", -EINVAL, [&] { return ntbmsg_cq_poll(nullptr, &done_, 1); }},
            {"cq_poll", "completions NULL", -EINVAL,
             [&] { return ntbmsg_cq_poll(here_.cq, nullptr, 1); }},
            {"cq_poll", "n 0", -EINVAL, [&] { return ntbmsg_cq_poll(here_.cq, &done_, 0); }},
            {"cq_event_fd", "NULL", -EINVAL, [&] { return ntbmsg_cq_event_fd(nullptr); }},
            {"cq_arm", "NULL", -EINVAL, [&] { return ntbmsg_cq_arm(nullptr); }},
        };
    }

    std::vector<Row> of_regions()
    {
        constexpr size_t too_many = (size_t{1} << 40) + 1;
        void *at = memory_.data();
        return {
            {"region_alloc", "endpoint NULL", -EINVAL,
             [&] { return ntbmsg_region_alloc(nullptr, 64, every_right, &made_); }},
            {"region_alloc", "bytes 0", -EINVAL,
             [&] { return ntbmsg_region_alloc(near_, 0, every_right, &made_); }},
            {"region_alloc", "bytes", -EINVAL,
             [&] { return ntbmsg_region_alloc(near_, too_many, every_right, &made_); }},
            {"region_alloc", "rights 0", -EINVAL,
             [&] { return ntbmsg_region_alloc(near_, 64, 0, &made_); }},
            {"region_alloc", "rights", -EINVAL,
             [&] { return ntbmsg_region_alloc(near_, 64, 8, &made_); }},
            {"region_alloc", "out NULL", -EINVAL,
             [&] { return ntbmsg_region_alloc(near_, 64, every_right, nullptr); }},
            {"region_register", "endpoint NULL", -EINVAL,
             [=, this] { return ntbmsg_region_register(nullptr, at, 64, every_right, &made_); }},
            {"region_register", "address NULL", -EINVAL,
             [&] { return ntbmsg_region_register(near_, nullptr, 64, every_right, &made_); }},
            {"region_register", "address not mapped", -EFAULT,
             [&] { return ntbmsg_region_register(near_, hole(), 64, every_right, &made_); }},
            {"region_register", "bytes 0", -EINVAL,
             [=, this] { return ntbmsg_region_register(near_, at, 0, every_right, &made_); }},
            {"region_register", "bytes", -EINVAL,
             [=, this] {
                 return ntbmsg_region_register(near_, at, too_many, every_right, &made_);
             }},
            {"region_register", "rights 0", -EINVAL,
             [=, this] { return ntbmsg_region_register(near_, at, 64, 0, &made_); }},
            {"region_register", "rights", -EINVAL,
             [=, this] { return ntbmsg_region_register(near_, at, 64, 8, &made_); }},
            {"region_register", "out NULL", -EINVAL,
             [=, this] { return ntbmsg_region_register(near_, at, 64, every_right, nullptr); }},
            {"region_release", "NULL", -EINVAL, [&] { return ntbmsg_region_release(nullptr); }},
            {"region_info_get", "region NULL", -EINVAL,
             [&] { return ntbmsg_region_info_get(nullptr, &region_info_); }},
            {"region_info_get", "info NULL", -EINVAL,
             [&] { return ntbmsg_region_info_get(region_, nullptr); }},
            {"region_info_get", "size", -EINVAL,
             [&] { return ntbmsg_region_info_get(region_, &region_info_); }},
            {"region_token_get", "region NULL", -EINVAL,
             [&] { return ntbmsg_region_token_get(nullptr, &token_); }},
            {"region_token_get", "token NULL", -EINVAL,
             [&] { return ntbmsg_region_token_get(region_, nullptr); }},
            {"remote_open", "channel NULL", -EINVAL,
             [&] { return ntbmsg_remote_open(nullptr, &token_, &opened_); }},
            {"remote_open", "token NULL", -EINVAL,
             [&] { return ntbmsg_remote_open(here_.channel, nullptr, &opened_); }},
            {"remote_open", "token of zeros", -EINVAL,
             [&] { return ntbmsg_remote_open(here_.channel, &token_, &opened_); }},
            {"remote_open", "out NULL", -EINVAL,
             [&] {
                 const ntbmsg_region_token sound = token_of(region_);
                 return ntbmsg_remote_open(here_.channel, &sound, nullptr);
             }},
            {"remote_close", "NULL", 0, [&] { return ntbmsg_remote_close(nullptr), 0; }},
        };
    }

    /// A post of one operation with one field out of range; else it is a write of 8 bytes.
    Row post_with(const char *what, int expected, const std::function<void(ntbmsg_work &)> &spoil)
    {
        return {"channel_post_burst", what, expected, [this, spoil] {
                    ntbmsg_work w = work(NTBMSG_OP_WRITE, remote_, 0, sges_, 1);
                    spoil(w);
                    return post(w);
                }};
    }
    std::vector<Row> of_posting()
    {
        using W = ntbmsg_work;
        const auto atomic = [](W &w) {
            w.op = NTBMSG_OP_FETCH_ADD;
            w.sges = nullptr;
            w.sge_count = 0;
        };
        return {
            {"channel_post_burst", "channel NULL", -EINVAL,
             [&] { return ntbmsg_channel_post_burst(nullptr, &work_, 1); }},
            {"channel_post_burst", "works NULL", -EINVAL,
             [&] { return ntbmsg_channel_post_burst(here_.channel, nullptr, 1); }},
            {"channel_post_burst", "n 0", -EINVAL,
             [&] { return ntbmsg_channel_post_burst(here_.channel, &work_, 0); }},
            post_with("remote NULL", -EINVAL, [](W &w) { w.remote = nullptr; }),
            post_with("op 0", -EINVAL, [](W &w) { w.op = 0; }),
            post_with("op RECV_IMM", -EINVAL, [](W &w) { w.op = NTBMSG_OP_RECV_IMM; }),
            post_with("flags", -EINVAL, [](W &w) { w.flags = 4; }),
            post_with("sges NULL", -EINVAL, [](W &w) { w.sges = nullptr; }),
            post_with("sge_count", -EINVAL, [](W &w) { w.sge_count = NTBMSG_MAX_SGES + 1; }),
            post_with("address NULL", -EINVAL, [this](W &w) { w.sges = &nowhere_; }),
            post_with("bytes", -EINVAL, [this](W &w) { w.sges = &too_long_; }),
            post_with("range", -ERANGE, [this](W &w) { w.offset = memory_.size() - 7; }),
            post_with("range that wraps", -ERANGE, [](W &w) { w.offset = UINT64_MAX - 3; }),
            post_with("right", -EACCES, [](W &w) { w.op = NTBMSG_OP_READ; }),
            post_with("atomic with pieces", -EINVAL, [](W &w) { w.op = NTBMSG_OP_FETCH_ADD; }),
            post_with("atomic not aligned", -EINVAL,
                      [=](W &w) {
                          atomic(w);
                          w.offset = 4;
                      }),
            post_with("atomic outside", -ERANGE,
                      [=, this](W &w) {
                          atomic(w);
                          w.offset = memory_.size();
                      }),
        };
    }

    /// A page that is not there.
    void *hole()
    {
        void *page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(page, MAP_FAILED);
        munmap(page, 4096);
        return page;
    }

    std::vector<uint8_t> memory_ = std::vector<uint8_t>(64);
    ntbmsg_region *region_ = nullptr, *made_ = nullptr;
    ntbmsg_remote *remote_ = nullptr, *opened_ = nullptr;
    ntbmsg_listener *listener_ = nullptr, *other_listener_ = nullptr;
    ntbmsg_poll_set *set_ = nullptr;
    ntbmsg_endpoint *endpoint_ = nullptr;
    ntbmsg_channel *channel_ = nullptr;
    ntbmsg_cq *cq_ = nullptr;
    rte_mbuf *mbuf_ = nullptr;
    char text_[96] = {};
    uint32_t count_ = 0;
    ntbmsg_room room_{};
    ntbmsg_queue_burst burst_{};
    ntbmsg_event event_ = NTBMSG_EVENT_CONNECTED;
    ntbmsg_endpoint_stats stats_{};
    ntbmsg_request nobody_{}, request_{};
    ntbmsg_channel_info info_{};
    ntbmsg_region_info region_info_{};
    ntbmsg_region_token token_{};
    ntbmsg_ready ready_{};
    ntbmsg_completion done_{};
    ntbmsg_work work_{};
    uint64_t word_ = 0;
    ntbmsg_sge sges_[NTBMSG_MAX_SGES + 1] = {{&word_, 8, 0}};
    ntbmsg_sge nowhere_ = {nullptr, 8, 0};
    ntbmsg_sge too_long_ = {&word_, NTBMSG_MAX_OPERATION + 1, 0};
};

TEST_F(Arguments, OutOfRangeAreAnsweredAsTheHeaderSays)
{
    request_.worker = here_.worker;
    request_.id = 0x10001;
    std::set<std::string> called;
    for (const auto &rows :
         {of_endpoints(), of_connecting(), of_channels(), of_regions(), of_posting()}) {
        check(rows);
        for (const Row &row : rows)
            called.insert(std::string("ntbmsg_") + row.function);
    }
    for (const void *made :
         {static_cast<const void *>(endpoint_), static_cast<const void *>(channel_),
          static_cast<const void *>(cq_), static_cast<const void *>(made_),
          static_cast<const void *>(opened_), static_cast<const void *>(other_listener_)})
        EXPECT_EQ(made, nullptr) << "set only where it worked";

    // The map is what can be called at all.
    std::ifstream map(NTBMSG_MAP);
    std::stringstream text;
    text << map.rdbuf();
    const std::string names = text.str();
    const std::regex name("ntbmsg_[a-z_]+");
    unsigned exported = 0;
    for (std::sregex_iterator i(names.begin(), names.end(), name), end; i != end; ++i, ++exported)
        EXPECT_EQ(called.count(i->str()), 1u) << i->str() << " has no row";
    EXPECT_GT(exported, 40u);

    // And nothing has happened.
    const ntbmsg_sge sge{&word_, 8, 0};
    word_ = 77;
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE, remote_, 0, &sge, 1)).status, 0);
    EXPECT_EQ(memory_[0], 77);
}

} // namespace
