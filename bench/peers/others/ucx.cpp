// SPDX-License-Identifier: BSD-3-Clause
// UCX: tagged messages between two workers.
#include "peers/links/posted.hpp"
#include "peers/others/ucx_pair.hpp"

namespace peers
{

namespace
{

constexpr ucp_tag_t tag = 1;

class Ucx
{
public:
    using Request = ucs_status_ptr_t; ///< NULL: done

    bool open(const Options &options, std::string &error)
    {
        return m_pair.open(options, UCP_FEATURE_TAG, error);
    }

    bool post_send(void *data, size_t bytes, Request &request)
    {
        request = ucp_tag_send_nbx(m_pair.endpoint(), data, bytes, tag, &m_plain);
        return !UCS_PTR_IS_ERR(request);
    }

    bool post_receive(void *data, size_t room, Request &request)
    {
        request = ucp_tag_recv_nbx(m_pair.worker(), data, room, tag, UINT64_MAX, &m_plain);
        return !UCS_PTR_IS_ERR(request);
    }

    int done(Request &request) { return m_pair.done(request); }

private:
    const ucp_request_param_t m_plain = {};
    UcxPair m_pair;
};

} // namespace

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::PostedLink<peers::Ucx>>(argc, argv);
}
