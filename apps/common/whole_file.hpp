// SPDX-License-Identifier: BSD-3-Clause
// A file that is there as a whole or not at all.
#ifndef APP_WHOLE_FILE_HPP
#define APP_WHOLE_FILE_HPP

#include <string>
#include <string_view>

namespace app
{

/// Writes @p text so that @p path holds the old content or all of the new one: beside it first, and
/// then under its name. "-" is standard output; what is no regular file is written to directly.
/// @return empty, or one line that says what is wrong
std::string write_whole(const std::string &path, std::string_view text);

} // namespace app

#endif
