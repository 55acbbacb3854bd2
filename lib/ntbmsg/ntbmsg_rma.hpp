// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTBMSG_RMA_HPP
#define NTBMSG_RMA_HPP

/// @file
/// ntbmsg_rma.h for C++20, as ntbmsg.hpp says. Experimental, as a whole.

#ifndef ALLOW_EXPERIMENTAL_API
#error "ntbmsg_rma.hpp is experimental: compile with -DALLOW_EXPERIMENTAL_API"
#else

#include <ntbmsg_channel.hpp>
#if __cplusplus >= 202002L

namespace ntbmsg
{

/// Completions of operations. Must be destroyed after the channels that use it.
class CompletionQueue : public Owner<ntbmsg_cq, ntbmsg_cq_destroy>
{
public:
    using Owner::Owner;

    /// ntbmsg_cq_create()
    [[nodiscard]] int create(uint32_t entries, ntbmsg_completion_fn fn = nullptr,
                             void *arg = nullptr)
    {
        return fill([&](ntbmsg_cq **made) { return ntbmsg_cq_create(entries, fn, arg, made); });
    }
    /// ntbmsg_cq_destroy(). @return 0: it is empty now; -EBUSY: call again
    int destroy() { return close_handle(); }
    /// ntbmsg_cq_poll()
    int poll(std::span<ntbmsg_completion> completions)
    {
        return ntbmsg_cq_poll(handle_, completions.data(), burst_length(completions.size()));
    }
    /// ntbmsg_cq_event_fd()
    int event_fd() { return ntbmsg_cq_event_fd(handle_); }
    /// ntbmsg_cq_arm()
    int arm() { return ntbmsg_cq_arm(handle_); }
};

/// ntbmsg_region_info that knows its size.
struct RegionInfo : ntbmsg_region_info {
    RegionInfo() : ntbmsg_region_info{} { size = sizeof(ntbmsg_region_info); }
};

/// A memory region that the peer may access. Its destructor revokes it.
class Region : public Owner<ntbmsg_region, ntbmsg_region_release>
{
public:
    using Owner::Owner;

    /// ntbmsg_region_alloc()
    [[nodiscard]] int alloc(const Endpoint &endpoint, std::size_t bytes, uint32_t rights)
    {
        return fill([&](ntbmsg_region **made) {
            return ntbmsg_region_alloc(endpoint.get(), bytes, rights, made);
        });
    }
    /// ntbmsg_region_register()
    [[nodiscard]] int register_memory(const Endpoint &endpoint, std::span<std::byte> memory,
                                      uint32_t rights)
    {
        return fill([&](ntbmsg_region **made) {
            return ntbmsg_region_register(endpoint.get(), memory.data(), memory.size(), rights,
                                          made);
        });
    }
    /// ntbmsg_region_release(). @return 0: it is empty now; -EIO: call again
    int revoke() { return close_handle(); }
    /// ntbmsg_region_info_get()
    int info(RegionInfo &info) const { return ntbmsg_region_info_get(handle_, &info); }
    /// The memory itself; empty: there is no region.
    std::span<std::byte> memory() const
    {
        RegionInfo known;
        if (info(known) != 0)
            return {};
        return {static_cast<std::byte *>(known.address), static_cast<std::size_t>(known.bytes)};
    }
    /// ntbmsg_region_token_get()
    int token(ntbmsg_region_token &token) const { return ntbmsg_region_token_get(handle_, &token); }
};

/// A region of the peer. Must be destroyed before its channel.
class Remote : public Owner<ntbmsg_remote, ntbmsg_remote_close>
{
public:
    using Owner::Owner;

    /// ntbmsg_remote_open()
    [[nodiscard]] int open(const Channel &channel, const ntbmsg_region_token &token)
    {
        return fill(
            [&](ntbmsg_remote **made) { return ntbmsg_remote_open(channel.get(), &token, made); });
    }
};

} // namespace ntbmsg

#endif
#endif
#endif
