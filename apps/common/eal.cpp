// SPDX-License-Identifier: BSD-3-Clause
#include "eal.hpp"

#include <cstring>

#include <rte_eal.h>

namespace app
{

OwnArguments own_arguments(int argc, char **argv)
{
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--") == 0)
            return {argc - i, argv + i, true};
    }
    return {1, argv, false};
}

Eal::Eal(int argc, char **argv) : running_(rte_eal_init(argc, argv) >= 0) {}

Eal::~Eal()
{
    if (running_)
        rte_eal_cleanup();
}

} // namespace app
