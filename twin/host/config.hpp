// SPDX-License-Identifier: BSD-3-Clause
// What a configuration may say.
#ifndef PLX_TWIN_HOST_CONFIG_HPP
#define PLX_TWIN_HOST_CONFIG_HPP

#include <cstddef>

namespace plx::twin
{

struct Config;
struct Error;

inline constexpr size_t cable_name_max = 511; ///< characters
/// @return 0, or a negative errno and why in @p error
int config_check(const Config &config, Error *error);

} // namespace plx::twin

#endif
