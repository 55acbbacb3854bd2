// SPDX-License-Identifier: BSD-3-Clause
// UCX: puts into memory of the other side, with a fence before what says how far was written.
#include "peers/links/put.hpp"
#include "peers/others/ucx_pair.hpp"

#include <cstring>

namespace peers
{

namespace
{

class UcxPut
{
public:
    UcxPut() = default;
    ~UcxPut();
    UcxPut(const UcxPut &) = delete;
    UcxPut &operator=(const UcxPut &) = delete;

    bool open(const Options &options, std::string &error)
    {
        if (!m_pair.open(options, UCP_FEATURE_RMA, error))
            return false;
        if (!expose() || !swap_keys(options))
            error = "UCX exposes no memory";
        return error.empty();
    }

    std::byte *memory() const { return m_memory; }
    void progress() { ucp_worker_progress(m_pair.worker()); }

    bool put(const Put *puts, unsigned n, uint64_t give_up)
    {
        ucs_status_ptr_t requests[most_puts];
        for (unsigned i = 0; i < n; i++) {
            if (n != 1 && i == n - 1 && ucp_worker_fence(m_pair.worker()) != UCS_OK)
                return false;
            requests[i] = ucp_put_nbx(m_pair.endpoint(), puts[i].from, puts[i].bytes,
                                      m_theirs + puts[i].offset, m_key, &m_plain);
        }
        bool good = true;
        for (unsigned i = 0; i < n; i++)
            good = await(requests[i], give_up) && good;
        return good;
    }

private:
    bool expose();
    bool swap_keys(const Options &options);
    bool await(ucs_status_ptr_t request, uint64_t give_up)
    {
        int done = 0;
        for (uint64_t spin = 1; (done = m_pair.done(request)) == 0; spin++)
            if (spin % measure::polls_per_clock == 0 && monotonic_ns() > give_up)
                return false;
        return done == 1;
    }

    const ucp_request_param_t m_plain = {};
    UcxPair m_pair;
    ucp_mem_h m_exposed = nullptr;
    std::byte *m_memory = nullptr;
    uint64_t m_theirs = 0; ///< where the other side's memory begins, in its addresses
    ucp_rkey_h m_key = nullptr;
};

UcxPut::~UcxPut()
{
    if (m_key)
        ucp_rkey_destroy(m_key);
}

/// UCX chooses what memory it is, so that its transports can reach it.
bool UcxPut::expose()
{
    ucp_mem_map_params_t wanted = {};
    wanted.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    wanted.length = put_bytes;
    wanted.flags = UCP_MEM_MAP_ALLOCATE;
    ucp_mem_attr_t got = {};
    got.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    if (ucp_mem_map(m_pair.context(), &wanted, &m_exposed) != UCS_OK ||
        ucp_mem_query(m_exposed, &got) != UCS_OK)
        return false;
    m_memory = static_cast<std::byte *>(got.address);
    std::memset(m_memory, 0, put_bytes);
    return true;
}

/// An address, and the key to what lies there.
bool UcxPut::swap_keys(const Options &options)
{
    void *key = nullptr;
    size_t length = 0;
    if (ucp_rkey_pack(m_pair.context(), m_exposed, &key, &length) != UCS_OK)
        return false;
    const auto address = reinterpret_cast<uint64_t>(m_memory);
    std::string mine(reinterpret_cast<const char *>(&address), sizeof(address));
    mine.append(static_cast<const char *>(key), length);
    ucp_rkey_buffer_release(key);
    std::string theirs;
    if (!exchange(options, "key", mine, theirs) || theirs.size() <= sizeof(m_theirs))
        return false;
    std::memcpy(&m_theirs, theirs.data(), sizeof(m_theirs));
    return ucp_ep_rkey_unpack(m_pair.endpoint(), theirs.data() + sizeof(m_theirs), &m_key) ==
           UCS_OK;
}

} // namespace

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::PutLink<peers::UcxPut>>(argc, argv);
}
