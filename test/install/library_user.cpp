// SPDX-License-Identifier: BSD-3-Clause
// A program that needs only the library, in C++, linked through libntbmsg.pc.
#include <cstdio>

#include <ntbmsg.hpp>

int main()
{
    ntbmsg::Endpoint endpoint;
    ntbmsg::EndpointOptions options;
    options.queues = 65;
    std::printf("version %u.%u\n", ntbmsg_version() >> 16, ntbmsg_version() & 0xffffU);
    return ntbmsg_version() != (NTBMSG_VERSION_MAJOR << 16 | NTBMSG_VERSION_MINOR) ||
           endpoint.open("none", options) == 0;
}
