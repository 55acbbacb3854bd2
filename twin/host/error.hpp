// SPDX-License-Identifier: BSD-3-Clause
// Errors for the user: one sentence that says what, where, and what was expected.
#ifndef PLX_TWIN_HOST_ERROR_HPP
#define PLX_TWIN_HOST_ERROR_HPP

namespace plx::twin
{

struct Error;

/// Writes the sentence, unless @p error is NULL. @return @p code
__attribute__((format(printf, 3, 4))) int fail(Error *error, int code, const char *format, ...);

/// fail() for a cable that finds no file descriptor: how many it needs, and what the limit is.
int fail_for_descriptors(Error *error, const char *cable);
/// What a socket cable with a block at either end opens, at the most.
inline constexpr unsigned descriptors_needed = 12;

} // namespace plx::twin

#endif
