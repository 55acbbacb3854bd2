// SPDX-License-Identifier: BSD-3-Clause
// Whether EAL runs on hugepages in a test's process, and its arguments then.
#ifndef TEST_SUPPORT_PAGES_HPP
#define TEST_SUPPORT_PAGES_HPP

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace test
{

inline unsigned free_huge_pages()
{
    std::ifstream file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    unsigned pages = 0;
    file >> pages;
    return file ? pages : 0;
}

/// Where the machine has enough of them, as in real life. NTBMSG_TEST_PAGES says "huge" or "none"
/// instead: tools/test knows what it reserved, and some tests are marked, so that a run of all
/// tests takes both paths. So do the sanitized builds, which never take hugepages.
inline bool huge_pages_granted()
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#else
    constexpr unsigned enough = 256; // for what runs on its own
    const char *asked = std::getenv("NTBMSG_TEST_PAGES");
    return asked != nullptr ? std::string(asked) == "huge" : free_huge_pages() >= enough;
#endif
}

/// Of no device, no file and no more than @p megabytes of memory.
inline std::vector<std::string> eal_arguments(const char *program, bool huge, unsigned megabytes)
{
    std::vector<std::string> arguments = {program, "--no-pci", "--no-shconf", "--no-telemetry",
                                          "--log-level=error"};
    const std::string bound = std::to_string(megabytes);
    if (huge)
        arguments.insert(arguments.end(),
                         {"--in-memory", "--single-file-segments", "--socket-limit=" + bound});
    else
        arguments.insert(arguments.end(), {"--no-huge", "-m", bound});
    return arguments;
}

} // namespace test

#endif
