// SPDX-License-Identifier: BSD-3-Clause
#include "port/channel.hpp"

#include <cerrno>

int ntbmsg::send_error(uint8_t state)
{
    if (may_send(state))
        return 0;
    if (state == NTBMSG_CHANNEL_CONNECTING)
        return -ENOTCONN;
    return state == NTBMSG_CHANNEL_SHUT || state == NTBMSG_CHANNEL_CLOSED ? -ESHUTDOWN
                                                                          : -ECONNRESET;
}
