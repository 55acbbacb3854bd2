// SPDX-License-Identifier: BSD-3-Clause
// Sealed memory files, which can be mapped without fear that their size changes below the mapping.
#ifndef NTBCLIENT_WIRE_SEALED_HPP
#define NTBCLIENT_WIRE_SEALED_HPP

#include <cstddef>

namespace ntbc
{

/// @return a new descriptor of @p bytes of zeros, sealed against a change of size and further
///         seals, or a negative errno
int sealed_create(const char *name, size_t bytes);
/// Whether @p fd, sent by another process, is such memory of exactly @p bytes.
bool sealed_check(int fd, size_t bytes);
/// Maps all of it, shared. @return NULL on failure
void *sealed_map(int fd, size_t bytes);
/// Whether @p fd, sent by another process, is a local stream socket that is connected.
bool is_bell(int fd);

} // namespace ntbc

#endif
