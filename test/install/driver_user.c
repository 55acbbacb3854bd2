/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that uses the driver without the library, linked through librte_raw_plx_ntb.pc. */
#include <stdio.h>

#include <rte_eal.h>

#include <rte_pmd_plx_ntb.h>

int main(int argc, char **argv)
{
    int found;

    if (rte_eal_init(argc, argv) < 0)
        return 1;
    found = rte_pmd_plx_ntb_find("raw_plx_ntb0");
    printf("device %d\n", found);
    rte_eal_cleanup();
    return found < 0;
}
