// SPDX-License-Identifier: BSD-3-Clause
// Programs do these things with sockets. Each case says what it saw: the test compares that with
// and without the preload.
//
//   traps CASE
//   traps list
//   traps repeat KIND CALLS
#include "traps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const struct trap *const tables[] = {
        descriptors_traps, processes_traps, transfer_traps, life_traps,        signals_traps,
        sets_traps,        uring_traps,     threads_traps,  forked_sets_traps, pages_traps};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 4 && strcmp(argv[1], "repeat") == 0) {
        repeat_calls(atoi(argv[2]), atoi(argv[3]));
        return 0;
    }
    if (argc != 2)
        return 2;
    for (unsigned i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        for (const struct trap *trap = tables[i]; trap->name != NULL; trap++) {
            if (strcmp(argv[1], "list") == 0)
                puts(trap->name);
            else if (strcmp(argv[1], trap->name) == 0) {
                trap->run();
                return 0;
            }
        }
    return strcmp(argv[1], "list") == 0 ? 0 : 2;
}
