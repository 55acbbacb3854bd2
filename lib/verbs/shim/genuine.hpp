// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_SHIM_GENUINE_HPP
#define NTB_VERBS_SHIM_GENUINE_HPP

#include <string>

#include "shim/abi34.hpp"

namespace ntb::verbs::shim
{

/// The library of the program, below this one.
struct Genuine {
    InitContext *init_context = nullptr;
    SetOps *set_ops = nullptr;
    UninitContext *uninit_context = nullptr;
    std::string refusal; ///< why no device can be offered to it; empty: one can

    /// Looked for once, when the program first calls libibverbs.
    static const Genuine &get();
    /// A function that is interposed here. NULL: that version has none.
    static void *find(const char *name);
};

template <typename Function>
Function *genuine(const char *name)
{
    return reinterpret_cast<Function *>(Genuine::find(name));
}

/// Opens libibverbs, and says what is wrong with it; empty: nothing.
std::string check_libibverbs(void *&library);

} // namespace ntb::verbs::shim

#endif
