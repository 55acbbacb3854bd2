// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_SHIM_SLOTS_HPP
#define NTB_VERBS_SHIM_SLOTS_HPP

#include <cstddef>

namespace ntb::verbs::shim
{

/// A function that a loaded file calls through its table of addresses.
struct Slot {
    const char *name;
    const char *other_name; ///< by which other versions of libc have it, or NULL
    void *replacement;
    void *original; ///< a pointer to a function, which takes what was there
};

/// Replaces functions in the tables of a loaded file alone.
/// @param file   how its name begins, without folder
/// @param slots  all of them are found, or nothing is changed
/// @return 1 done, 0 no such file is loaded, -1 it lacks one of them, or cannot be written
int replace(const char *file, const Slot *slots, std::size_t n);

} // namespace ntb::verbs::shim

#endif
