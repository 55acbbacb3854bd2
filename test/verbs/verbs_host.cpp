// SPDX-License-Identifier: BSD-3-Clause
// One end of a reliable connection through the node daemon, for hosts_test.py.
//   verbs_host SOCKET serve      returns each message that it receives
//   verbs_host SOCKET ask poll   sends, writes, reads, adds and swaps, and checks what returns
//   verbs_host SOCKET ask wait   the same, asleep until completions come
//   verbs_host SOCKET flood N    reads, says "ready", after a line posts N writes, and says how
//                                they complete
//   verbs_host SOCKET fill poll  writes until that fails, and says how; says "direct" once a
//                                write has gone without a message
// With "direct" behind it memory of the region is exchanged; it says how many requests went by it.
// "ask" with "granted direct" writes first until one write has gone by it.
// Each says "here LID QPN KEY ADDRESS", and expects the same words of the other end in a line.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

#include "end.hpp"

namespace
{

using namespace verbs_test;

constexpr std::uint32_t region_bytes = 1 << 20;
constexpr std::uint32_t longest_message = 100000;
constexpr std::uint32_t n_receives = 4;

class Host
{
public:
    Host(const char *socket, bool sleeps, bool is_direct)
        : node_(socket, is_direct), region_(node_, region_bytes), completions_(node_, 1024, sleeps),
          slots_(n_receives * longest_message)
    {
        check("slots", ntbv_mr_register(node_.pd(), slots_.data(), slots_.size(), slot(0),
                                        all_rights, &slots_key_));
        ntbv_qp_init init = {};
        init.type = NTBV_RC;
        init.send_cq = init.recv_cq = completions_.cq();
        init.max_send_wr = 128;
        init.max_recv_wr = n_receives;
        init.max_send_sge = init.max_recv_sge = 1;
        check("qp", ntbv_qp_create(node_.pd(), &init, &qp_));
        check("init", to_init(qp_, NTBV_RC));
        for (std::uint32_t i = 0; i < n_receives; ++i)
            post_receive(i);
        say_here(node_, qp_, region_);
    }
    ~Host()
    {
        ntbv_qp_destroy(qp_);
        ntbv_mr_deregister(node_.pd(), slots_key_);
    }
    Host(const Host &) = delete;
    Host &operator=(const Host &) = delete;

    void connect() { peer_ = connect_to_line(qp_); }

    void post(ntbv_opcode opcode, std::uint64_t id, std::uint32_t offset, std::uint32_t bytes,
              std::uint64_t add = 0, std::uint64_t swap = 0)
    {
        Work work(opcode, id, region_.piece(offset, bytes));
        work.to(peer_, offset);
        work.wr.compare_add = add;
        work.wr.swap = swap;
        check("post", work.post(qp_));
    }
    void post_receive(std::uint64_t id)
    {
        check("post receive", post_recv(qp_, id, {slot(id), longest_message, slots_key_}));
    }
    /// The next completion, whatever its status. @retval false a line has come first
    bool next(ntbv_wc &wc, bool or_line = false) { return completions_.next(wc, or_line); }
    void expect(std::uint64_t id, std::uint32_t opcode)
    {
        ntbv_wc wc;
        next(wc);
        if (wc.status != NTBV_SUCCESS || wc.id != id || wc.opcode != opcode)
            fail("completion", wc.status);
    }

    std::uint64_t slot(std::uint64_t n) const
    {
        return reinterpret_cast<std::uint64_t>(slots_.data()) + n * longest_message;
    }
    const Region &bytes() const { return region_; }
    std::uint64_t count(ntbv_count which) const { return node_.count(which); }
    const std::uint8_t *received(std::uint64_t id) const { return &slots_[id * longest_message]; }
    std::uint64_t word(std::uint32_t offset) const
    {
        std::uint64_t value;
        std::memcpy(&value, &region_[offset], sizeof(value));
        return value;
    }

private:
    Node node_;
    Region region_;
    Completions completions_;
    std::vector<std::uint8_t> slots_;
    ntbv_qp *qp_ = nullptr;
    std::uint32_t slots_key_ = 0;
    Peer peer_;
};

// Until a line comes: reads, writes and atomics of the peer are no matter of this program.
void serve(Host &host)
{
    ntbv_wc wc;
    while (host.next(wc, true)) {
        if (wc.status != NTBV_SUCCESS)
            fail("completion", wc.status);
        if (wc.opcode != NTBV_WC_RECV)
            continue;
        std::memcpy(host.bytes().data(), host.received(wc.id), wc.bytes);
        host.post_receive(wc.id);
        host.post(NTBV_SEND, 1000, 0, wc.bytes);
    }
}

void fill(Host &host, std::uint32_t from, std::uint32_t to, std::uint32_t seed)
{
    for (std::uint32_t i = from; i < to; ++i)
        host.bytes()[i] = byte_at(i, seed);
}

void send_and_return(Host &host, std::uint32_t seed)
{
    const std::uint32_t bytes = 1 + seed * 7919 % longest_message;
    fill(host, 0, bytes, seed);
    host.post(NTBV_SEND, 1, 0, bytes);
    host.expect(1, NTBV_WC_SEND);
    ntbv_wc wc;
    host.next(wc);
    if (wc.status != NTBV_SUCCESS || wc.opcode != NTBV_WC_RECV || wc.bytes != bytes)
        fail("return", wc.status);
    for (std::uint32_t i = 0; i < bytes; ++i)
        if (host.received(wc.id)[i] != byte_at(i, seed))
            fail("returned byte", i);
    host.post_receive(wc.id);
}

// The second half of both regions, of which the server's program knows nothing.
void write_and_read(Host &host, std::uint32_t seed)
{
    constexpr std::uint32_t half = region_bytes / 2;
    fill(host, half, region_bytes, seed);
    host.post(NTBV_WRITE, 2, half, half);
    host.expect(2, NTBV_WC_WRITE);
    std::memset(&host.bytes()[half], 0, half);
    host.post(NTBV_READ, 3, half, half);
    host.expect(3, NTBV_WC_READ);
    for (std::uint32_t i = half; i < region_bytes; ++i)
        if (host.bytes()[i] != byte_at(i, seed))
            fail("read byte", i);
}

void add_and_swap(Host &host)
{
    constexpr std::uint32_t place = region_bytes / 2;
    host.post(NTBV_READ, 4, place, 8);
    host.expect(4, NTBV_WC_READ);
    const std::uint64_t before = host.word(place);
    for (std::uint64_t i = 0; i < 100; ++i) {
        host.post(NTBV_FETCH_ADD, 5, place, 8, 3);
        host.expect(5, NTBV_WC_FETCH_ADD);
        if (host.word(place) != before + i * 3)
            fail("old value", static_cast<long>(i));
    }
    host.post(NTBV_CMP_SWP, 6, place, 8, before + 300, 77);
    host.expect(6, NTBV_WC_CMP_SWP);
    if (host.word(place) != before + 300)
        fail("swapped value", 0);
    host.post(NTBV_READ, 7, place, 8);
    host.expect(7, NTBV_WC_READ);
    if (host.word(place) != 77)
        fail("new value", 0);
}

void flood(Host &host, unsigned requests)
{
    host.post(NTBV_READ, 0, 0, 8);
    host.expect(0, NTBV_WC_READ);
    puts("ready");
    char line[16];
    if (scanf(" %15s", line) != 1)
        fail("line", 0);
    for (unsigned i = 0; i < requests; ++i)
        host.post(NTBV_WRITE, i, 0, region_bytes / 4);
    puts("posted");
    std::string statuses;
    for (unsigned i = 0; i < requests; ++i) {
        ntbv_wc wc;
        host.next(wc);
        if (wc.id != i)
            fail("order", static_cast<long>(wc.id));
        statuses += ' ';
        statuses += std::to_string(wc.status);
    }
    printf("completed%s\n", statuses.c_str());
}

// There and back. The last one is not answered: who gets it ends at once, as by a signal.
constexpr unsigned last_words = 5000;

void talk_to_the_end(Host &host)
{
    for (unsigned i = 1; i <= last_words; ++i) {
        host.post(NTBV_SEND, 1000, 0, 8);
        unsigned wanted = i == last_words ? 1 : 2;
        for (; wanted != 0; --wanted) {
            ntbv_wc wc;
            host.next(wc);
            if (wc.status != NTBV_SUCCESS)
                fail("completion", wc.status);
            if (wc.opcode == NTBV_WC_RECV)
                host.post_receive(wc.id);
        }
    }
}

void answer_to_the_end(Host &host)
{
    for (unsigned n = 1;;) {
        ntbv_wc wc;
        host.next(wc);
        if (wc.status != NTBV_SUCCESS)
            fail("completion", wc.status);
        if (wc.opcode != NTBV_WC_RECV)
            continue;
        if (n++ == last_words)
            _exit(0);
        host.post_receive(wc.id);
        host.post(NTBV_SEND, 1000, 0, 8);
    }
}

// One write, and how it completed.
std::uint32_t write_one(Host &host, std::uint64_t value)
{
    std::memcpy(host.bytes().data(), &value, sizeof(value));
    host.post(NTBV_WRITE, value, 0, sizeof(value));
    ntbv_wc wc;
    host.next(wc);
    return wc.status;
}

// The daemons grant memory while the two ends are at work already.
void write_until_granted(Host &host)
{
    for (std::uint64_t i = 1; host.count(NTBV_COUNT_WRITES) == 0; ++i) {
        const std::uint32_t status = write_one(host, i);
        if (status != NTBV_SUCCESS)
            fail("completion", status);
    }
}

void fill_until_it_fails(Host &host)
{
    bool was_direct = false;
    for (std::uint64_t i = 1;; ++i) {
        const std::uint32_t status = write_one(host, i);
        if (status != NTBV_SUCCESS) {
            printf("ended %u\n", status);
            return;
        }
        if (!was_direct && host.count(NTBV_COUNT_WRITES) > 0) {
            was_direct = true;
            puts("direct");
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    setvbuf(stdout, nullptr, _IOLBF, 0);
    if (argc < 3)
        return 2;
    const std::string what = argv[2];
    const std::string how = argc > 3 ? argv[3] : "";
    const bool is_direct = std::strcmp(argv[argc - 1], "direct") == 0;
    Host host(argv[1], how != "poll", is_direct);
    host.connect();
    if (what == "serve") {
        serve(host);
    } else if (what == "ask") {
        if (argc > 4 && std::strcmp(argv[4], "granted") == 0)
            write_until_granted(host);
        for (std::uint32_t seed = 0; seed < 40; ++seed)
            send_and_return(host, seed);
        for (std::uint32_t seed = 0; seed < 4; ++seed)
            write_and_read(host, seed);
        add_and_swap(host);
    } else if (what == "fill") {
        fill_until_it_fails(host);
    } else if (what == "talk") {
        talk_to_the_end(host);
    } else if (what == "answer") {
        answer_to_the_end(host);
    } else {
        flood(host, static_cast<unsigned>(std::stoul(how)));
    }
    if (is_direct)
        printf("%" PRIu64 " without a message\n",
               host.count(NTBV_COUNT_WRITES) + host.count(NTBV_COUNT_READS));
    puts("done");
    return 0;
}
