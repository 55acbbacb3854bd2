// SPDX-License-Identifier: BSD-3-Clause
// libfabric: messages between two reliable datagram endpoints of the provider that --form names.
#include "peers/links/posted.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstring>

namespace peers
{

namespace
{

class Fabric
{
public:
    struct Request {
        fi_context context; ///< first: the provider's while the request is under way
        bool is_done;
    };

    Fabric() = default;
    ~Fabric();
    Fabric(const Fabric &) = delete;
    Fabric &operator=(const Fabric &) = delete;

    bool open(const Options &options, std::string &error);

    bool post_send(void *data, size_t bytes, Request &request)
    {
        return post(request, [&] {
            return fi_send(m_endpoint, data, bytes, nullptr, m_peer, &request.context);
        });
    }

    bool post_receive(void *data, size_t room, Request &request)
    {
        return post(request, [&] {
            return fi_recv(m_endpoint, data, room, nullptr, FI_ADDR_UNSPEC, &request.context);
        });
    }

    int done(Request &request)
    {
        if (!request.is_done && !progress())
            return -1;
        return request.is_done ? 1 : 0;
    }

private:
    /// A full queue drains by progress.
    template <typename Call>
    bool post(Request &request, Call call)
    {
        request.is_done = false;
        for (unsigned tries = 0; tries < 10000000; tries++) {
            const ssize_t failed = call();
            if (failed != -FI_EAGAIN)
                return failed == 0;
            if (!progress())
                return false;
        }
        return false;
    }

    bool progress();
    int start(const char *provider);
    int open_endpoint();
    bool connect(const Options &options);

    fi_info *m_info = nullptr;
    fid_fabric *m_fabric = nullptr;
    fid_domain *m_domain = nullptr;
    fid_cq *m_completions = nullptr;
    fid_av *m_addresses = nullptr;
    fid_ep *m_endpoint = nullptr;
    fi_addr_t m_peer = FI_ADDR_UNSPEC;
};

/// @return false: a request has failed
bool Fabric::progress()
{
    fi_cq_entry entries[16];
    const ssize_t got = fi_cq_read(m_completions, entries, std::size(entries));
    for (ssize_t i = 0; i < got; i++)
        reinterpret_cast<Request *>(entries[i].op_context)->is_done = true;
    return got >= 0 || got == -FI_EAGAIN;
}

int Fabric::start(const char *provider)
{
    fi_info *hints = fi_allocinfo();
    hints->caps = FI_MSG;
    hints->mode = FI_CONTEXT;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strdup(provider);
    const int failed = fi_getinfo(FI_VERSION(1, 9), nullptr, nullptr, 0, hints, &m_info);
    fi_freeinfo(hints);
    if (failed != 0)
        return failed;
    const int no_fabric = fi_fabric(m_info->fabric_attr, &m_fabric, nullptr);
    return no_fabric != 0 ? no_fabric : fi_domain(m_fabric, m_info, &m_domain, nullptr);
}

int Fabric::open_endpoint()
{
    fi_cq_attr completions = {};
    completions.format = FI_CQ_FORMAT_CONTEXT;
    completions.wait_obj = FI_WAIT_NONE;
    fi_av_attr addresses = {};
    addresses.type = FI_AV_TABLE;
    int failed = fi_cq_open(m_domain, &completions, &m_completions, nullptr);
    if (failed == 0)
        failed = fi_av_open(m_domain, &addresses, &m_addresses, nullptr);
    if (failed == 0)
        failed = fi_endpoint(m_domain, m_info, &m_endpoint, nullptr);
    if (failed == 0)
        failed = fi_ep_bind(m_endpoint, &m_completions->fid, FI_SEND | FI_RECV);
    if (failed == 0)
        failed = fi_ep_bind(m_endpoint, &m_addresses->fid, 0);
    return failed != 0 ? failed : fi_enable(m_endpoint);
}

bool Fabric::connect(const Options &options)
{
    char name[256] = "";
    size_t length = sizeof(name);
    std::string theirs;
    return fi_getname(&m_endpoint->fid, name, &length) == 0 &&
           exchange(options, "address", std::string(name, length), theirs) &&
           fi_av_insert(m_addresses, theirs.c_str(), 1, &m_peer, 0, nullptr) == 1;
}

bool Fabric::open(const Options &options, std::string &error)
{
    int failed = start(options.form.c_str());
    if (failed == 0)
        failed = open_endpoint();
    if (failed != 0)
        error = "provider " + options.form + ": " + fi_strerror(-failed);
    else if (!connect(options))
        error = "provider " + options.form + " does not connect";
    return error.empty();
}

Fabric::~Fabric()
{
    for (fid *object :
         {m_endpoint ? &m_endpoint->fid : nullptr, m_addresses ? &m_addresses->fid : nullptr,
          m_completions ? &m_completions->fid : nullptr, m_domain ? &m_domain->fid : nullptr,
          m_fabric ? &m_fabric->fid : nullptr})
        if (object)
            fi_close(object);
    if (m_info)
        fi_freeinfo(m_info);
}

} // namespace

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::PostedLink<peers::Fabric>>(argc, argv);
}
