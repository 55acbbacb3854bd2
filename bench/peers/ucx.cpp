// SPDX-License-Identifier: BSD-3-Clause
// UCX: tagged messages between two workers. Which transports it takes is said by UCX_TLS.
#include "posted.hpp"

#include <ucp/api/ucp.h>

namespace peers
{

namespace
{

constexpr ucp_tag_t tag = 1;

class Ucx
{
public:
    using Request = ucs_status_ptr_t; ///< NULL: done

    Ucx() = default;
    ~Ucx();
    Ucx(const Ucx &) = delete;
    Ucx &operator=(const Ucx &) = delete;

    bool open(const Options &options, std::string &error);

    bool post_send(void *data, size_t bytes, Request &request)
    {
        request = ucp_tag_send_nbx(m_endpoint, data, bytes, tag, &m_plain);
        return !UCS_PTR_IS_ERR(request);
    }

    bool post_receive(void *data, size_t room, Request &request)
    {
        request = ucp_tag_recv_nbx(m_worker, data, room, tag, UINT64_MAX, &m_plain);
        return !UCS_PTR_IS_ERR(request);
    }

    int done(Request &request)
    {
        if (!request)
            return 1;
        ucs_status_t status = ucp_request_check_status(request);
        if (status == UCS_INPROGRESS) {
            ucp_worker_progress(m_worker);
            status = ucp_request_check_status(request);
        }
        if (status == UCS_INPROGRESS)
            return 0;
        ucp_request_free(request);
        request = nullptr;
        return status == UCS_OK ? 1 : -1;
    }

private:
    bool start_worker();
    bool connect(const Options &options);

    const ucp_request_param_t m_plain = {};
    ucp_context_h m_context = nullptr;
    ucp_worker_h m_worker = nullptr;
    ucp_ep_h m_endpoint = nullptr;
};

bool Ucx::start_worker()
{
    ucp_params_t parameters = {};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
    parameters.features = UCP_FEATURE_TAG;
    ucp_worker_params_t single = {};
    single.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    single.thread_mode = UCS_THREAD_MODE_SINGLE;
    return ucp_init(&parameters, nullptr, &m_context) == UCS_OK &&
           ucp_worker_create(m_context, &single, &m_worker) == UCS_OK;
}

bool Ucx::connect(const Options &options)
{
    ucp_address_t *address = nullptr;
    size_t length = 0;
    if (ucp_worker_get_address(m_worker, &address, &length) != UCS_OK)
        return false;
    const std::string mine(reinterpret_cast<const char *>(address), length);
    ucp_worker_release_address(m_worker, address);
    std::string theirs;
    if (!exchange(options, mine, theirs))
        return false;
    ucp_ep_params_t parameters = {};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    parameters.address = reinterpret_cast<const ucp_address_t *>(theirs.data());
    return ucp_ep_create(m_worker, &parameters, &m_endpoint) == UCS_OK;
}

bool Ucx::open(const Options &options, std::string &error)
{
    if (!start_worker())
        error = "UCX does not start";
    else if (!connect(options))
        error = "UCX does not connect";
    return error.empty();
}

/// Receives are still posted, and the other side may be gone: the process ends right after this,
/// so nothing is flushed and the worker takes its requests with it.
Ucx::~Ucx()
{
    if (m_context && !m_worker)
        ucp_cleanup(m_context);
}

} // namespace

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::PostedLink<peers::Ucx>>(argc, argv);
}
