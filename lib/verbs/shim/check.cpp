// SPDX-License-Identifier: BSD-3-Clause
// Whether a libibverbs is of the private ABI that the shim was written for.
#include <dlfcn.h>

#include "shim/genuine.hpp"

namespace ntb::verbs::shim
{

std::string check_libibverbs(void *&library)
{
    library = dlopen("libibverbs.so.1", RTLD_LAZY);
    if (!library)
        return "there is no libibverbs.so.1 (Debian's package libibverbs1)";
    constexpr int highest = 1000;
    for (int abi = 0; abi < highest; ++abi) {
        const std::string version = "IBVERBS_PRIVATE_" + std::to_string(abi);
        if (!dlvsym(library, "verbs_set_ops", version.c_str()))
            continue;
        if (abi != private_abi)
            return "libibverbs has private ABI " + std::to_string(abi) +
                   ", and libntbverbs.so is for " + std::to_string(private_abi);
        // The table of functions grew below the same number until then.
        if (!dlvsym(library, "ibv_query_qp_data_in_order", "IBVERBS_1.14"))
            return "libibverbs is older than rdma-core 41";
        return {};
    }
    return "libibverbs has no private ABI, and libntbverbs.so is for " +
           std::to_string(private_abi);
}

} // namespace ntb::verbs::shim
