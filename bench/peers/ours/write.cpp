// SPDX-License-Identifier: BSD-3-Clause
// Ours: one-sided writes into a direct region of the other host, by the public calls.
#include "mbufs/swap_tokens.hpp"
#include "peers/links/put.hpp"
#include "peers/ours/own_channel.hpp"

namespace peers
{

namespace
{

class Writes
{
public:
    Writes() = default;
    ~Writes();
    Writes(const Writes &) = delete;
    Writes &operator=(const Writes &) = delete;

    bool open(const Options &options, std::string &error);

    std::byte *memory() const { return m_memory; }
    void progress() { ntbmsg_worker_poll(m_own.worker()); }
    bool put(const Put *puts, unsigned n, uint64_t give_up);

private:
    static constexpr uint64_t swap_ns = 15000000000u;

    int expose();
    bool await_completion(uint64_t give_up);

    OwnChannel m_own;
    ntbmsg_region *m_region = nullptr;
    ntbmsg_remote *m_remote = nullptr;
    std::byte *m_memory = nullptr;
    ntbmsg_sge m_pieces[most_puts];
    ntbmsg_work m_works[most_puts] = {};
};

Writes::~Writes()
{
    ntbmsg_remote_close(m_remote);
    if (m_region)
        ntbmsg_region_release(m_region);
}

bool Writes::open(const Options &options, std::string &error)
{
    if (!m_own.open(options, most_puts, error))
        return false;
    ntbmsg_region_token token = {};
    int failed = expose();
    if (failed == 0)
        failed = ntbmsg_region_token_get(m_region, &token);
    const uint64_t give_up = monotonic_ns() + swap_ns;
    if (failed == 0 && !bench::swap_tokens(m_own.channel(), ntbmsg_endpoint_pool(m_own.endpoint()),
                                           token, [&] { return monotonic_ns() > give_up; }))
        failed = -ETIMEDOUT;
    if (failed == 0)
        failed = ntbmsg_remote_open(m_own.channel(), &token, &m_remote);
    if (failed != 0)
        error = std::string("no region to write to: ") + strerror(-failed);
    for (unsigned i = 0; i < most_puts; i++) {
        m_works[i].remote = m_remote;
        m_works[i].sges = &m_pieces[i];
        m_works[i].sge_count = 1;
        m_works[i].op = NTBMSG_OP_WRITE;
    }
    return failed == 0;
}

int Writes::expose()
{
    ntbmsg_region_info info = {};
    info.size = sizeof(info);
    int failed = ntbmsg_region_alloc(m_own.endpoint(), put_bytes, NTBMSG_RIGHT_WRITE, &m_region);
    if (failed == 0)
        failed = ntbmsg_region_info_get(m_region, &info);
    m_memory = static_cast<std::byte *>(info.address);
    return failed;
}

/// The last one asks for a completion, which says that all are complete.
bool Writes::put(const Put *puts, unsigned n, uint64_t give_up)
{
    for (unsigned i = 0; i < n; i++) {
        m_pieces[i] = {const_cast<void *>(puts[i].from), static_cast<uint32_t>(puts[i].bytes), 0};
        m_works[i].offset = puts[i].offset;
        m_works[i].flags = i + 1 == n ? NTBMSG_WORK_SIGNAL : 0;
    }
    uint64_t spin = 0;
    for (unsigned posted = 0; posted < n;) {
        const int taken = ntbmsg_channel_post_burst(m_own.channel(), m_works + posted,
                                                    static_cast<uint16_t>(n - posted));
        if (taken < 0 || (++spin % measure::polls_per_clock == 0 && monotonic_ns() > give_up))
            return false;
        posted += static_cast<unsigned>(taken);
        if (posted < n)
            progress();
    }
    return await_completion(give_up);
}

bool Writes::await_completion(uint64_t give_up)
{
    ntbmsg_completion done;
    for (uint64_t spin = 1; ntbmsg_cq_poll(m_own.completions(), &done, 1) != 1; spin++) {
        progress();
        if (spin % measure::polls_per_clock == 0 && monotonic_ns() > give_up)
            return false;
    }
    return done.status == 0;
}

} // namespace

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::PutLink<peers::Writes>>(argc, argv);
}
