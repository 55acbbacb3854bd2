// SPDX-License-Identifier: BSD-3-Clause
// What a program prints and writes either arrives, or its exit status and one line say that it did
// not.
#ifndef APP_OUTPUT_HPP
#define APP_OUTPUT_HPP

namespace app
{

/// From here on a file that would grow beyond the user's limit (ulimit -f) is an error of that
/// write, like a full disk, and no longer the death of the process. Also for children.
void survive_file_limit();

/// Writes out what standard output still holds. A reader that has left, as of a pipe into head, is
/// no error.
/// @param status  exit status so far
/// @return the same; 1 instead of 0, with a line on standard error, if some of the output was lost
int finish_output(const char *program, int status);

} // namespace app

#endif
