// SPDX-License-Identifier: BSD-3-Clause
// What every use of UCX begins with: a context, a worker, and an endpoint to the other side. Which
// transports it takes is said by UCX_TLS.
#ifndef BENCH_PEERS_OTHERS_UCX_PAIR_HPP
#define BENCH_PEERS_OTHERS_UCX_PAIR_HPP

#include "peers/pair/exchange.hpp"

#include <ucp/api/ucp.h>

namespace peers
{

class UcxPair
{
public:
    UcxPair() = default;
    /// Receives may still be posted, and the other side may be gone: the process ends right after
    /// this, so nothing is flushed and the worker takes its requests with it.
    ~UcxPair()
    {
        if (m_context && !m_worker)
            ucp_cleanup(m_context);
    }
    UcxPair(const UcxPair &) = delete;
    UcxPair &operator=(const UcxPair &) = delete;

    /// @param features  UCP_FEATURE_TAG and others
    /// @return false: @p error says why
    bool open(const Options &options, uint64_t features, std::string &error)
    {
        if (!start_worker(features))
            error = "UCX does not start";
        else if (!connect(options))
            error = "UCX does not connect";
        return error.empty();
    }

    ucp_context_h context() const { return m_context; }
    ucp_worker_h worker() const { return m_worker; }
    ucp_ep_h endpoint() const { return m_endpoint; }

    /// Of a request that is under way, or NULL. @return 1 done, and freed; 0 not yet, having made
    /// progress; -1 it failed
    int done(ucs_status_ptr_t &request)
    {
        if (!request)
            return 1;
        if (UCS_PTR_IS_ERR(request))
            return -1;
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
    bool start_worker(uint64_t features)
    {
        ucp_params_t parameters = {};
        parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
        parameters.features = features;
        ucp_worker_params_t single = {};
        single.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        single.thread_mode = UCS_THREAD_MODE_SINGLE;
        return ucp_init(&parameters, nullptr, &m_context) == UCS_OK &&
               ucp_worker_create(m_context, &single, &m_worker) == UCS_OK;
    }

    bool connect(const Options &options)
    {
        ucp_address_t *address = nullptr;
        size_t length = 0;
        if (ucp_worker_get_address(m_worker, &address, &length) != UCS_OK)
            return false;
        const std::string mine(reinterpret_cast<const char *>(address), length);
        ucp_worker_release_address(m_worker, address);
        std::string theirs;
        if (!exchange(options, "address", mine, theirs))
            return false;
        ucp_ep_params_t parameters = {};
        parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        parameters.address = reinterpret_cast<const ucp_address_t *>(theirs.data());
        return ucp_ep_create(m_worker, &parameters, &m_endpoint) == UCS_OK;
    }

    ucp_context_h m_context = nullptr;
    ucp_worker_h m_worker = nullptr;
    ucp_ep_h m_endpoint = nullptr;
};

} // namespace peers

#endif
