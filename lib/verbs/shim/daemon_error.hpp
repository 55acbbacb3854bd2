// SPDX-License-Identifier: BSD-3-Clause
/**
 * @file
 * Why a node daemon is not there for a program, as a line for its user.
 */
#ifndef NTB_VERBS_SHIM_DAEMON_ERROR_HPP
#define NTB_VERBS_SHIM_DAEMON_ERROR_HPP

#include <cerrno>
#include <cstring>
#include <string>

namespace ntb::verbs::shim
{

/// @param error  positive, of ntbclient_attach() or ntbclient_listen()
inline std::string daemon_error(const std::string &socket, int error)
{
    const std::string daemon = "the node daemon at " + socket;
    switch (error) {
    case EDQUOT:
        return daemon + " admits no more of this user: 'quota' in its configuration";
    case EACCES:
        return daemon + " does not admit this user: 'mode' or 'allow' in its configuration";
    case ENOENT:
    case ECONNREFUSED:
        return "no node daemon at " + socket + ": " + strerror(error);
    default:
        return "no way to " + daemon + ": " + strerror(error);
    }
}

} // namespace ntb::verbs::shim

#endif
