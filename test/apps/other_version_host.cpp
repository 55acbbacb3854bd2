// SPDX-License-Identifier: BSD-3-Clause
// A host of tomorrow at the other end of a cable: it has the chip, and speaks a version of the wire
// protocol that is not known here. Says "spoken" when it has said so, and stays until its input
// ends.
//
//     other_version_host CABLE
#include <hostile.hpp>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include <poll.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return EXIT_FAILURE;
    GTEST_FLAG_SET(throw_on_failure, true); // what the peer expects of its chip
    testing::InitGoogleTest(&argc, argv);
    fault::Hostile peer(argv[1]);
    plx::wire::Hello hello = peer.honest();
    hello.major = plx::wire::version_major + 1;
    peer.say(hello);
    std::cout << "spoken" << std::endl;
    // Again and again, as clients do: what is said while the link goes down once more is lost.
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    while (poll(&input, 1, 4) == 0)
        peer.say(hello);
    return EXIT_SUCCESS;
}
