// SPDX-License-Identifier: BSD-3-Clause
#include "shim/genuine.hpp"

#include <dlfcn.h>

namespace ntb::verbs::shim
{
namespace
{

struct Found : Genuine {
    void *library = nullptr;

    Found()
    {
        refusal = check_libibverbs(library);
        if (!refusal.empty())
            return;
        const std::string version = "IBVERBS_PRIVATE_" + std::to_string(private_abi);
        const auto find_private = [&](const char *name) {
            return dlvsym(library, name, version.c_str());
        };
        init_context =
            reinterpret_cast<InitContext *>(find_private("_verbs_init_and_alloc_context"));
        set_ops = reinterpret_cast<SetOps *>(find_private("verbs_set_ops"));
        uninit_context = reinterpret_cast<UninitContext *>(find_private("verbs_uninit_context"));
        if (!init_context || !set_ops || !uninit_context)
            refusal = "libibverbs lacks a function of its private ABI";
    }
};

const Found &found()
{
    static const Found *const once = new Found; // calls may come as late as the process ends
    return *once;
}

} // namespace

const Genuine &Genuine::get()
{
    return found();
}

void *Genuine::find(const char *name)
{
    return found().library ? dlsym(found().library, name) : nullptr;
}

} // namespace ntb::verbs::shim
