// SPDX-License-Identifier: BSD-3-Clause
// Errors for the user: one sentence that says what, where, and what was expected.
#ifndef PLX_TWIN_HOST_ERROR_HPP
#define PLX_TWIN_HOST_ERROR_HPP

namespace plx::twin
{

struct Error;

/// Writes the sentence, unless @p error is NULL. @return @p code
__attribute__((format(printf, 3, 4))) int fail(Error *error, int code, const char *format, ...);

} // namespace plx::twin

#endif
