// SPDX-License-Identifier: BSD-3-Clause
// --version of programs whose other arguments are not options.
#ifndef APP_VERSION_HPP
#define APP_VERSION_HPP

namespace app
{

/// Prints name and version of this program where --version is the only argument.
/// @return whether it did
bool show_version(int argc, char **argv);

} // namespace app

#endif
