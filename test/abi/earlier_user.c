/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that was compiled with the headers of earlier/ and runs on the libraries of today. */
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_rawdev.h>

#include <ntbmsg.h>
#include <rte_pmd_plx_ntb.h>

#define EXPECT(what)                                                                               \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "line %d: %s\n", __LINE__, #what);                                     \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/* Behind each struct stands what its callee must not touch. */
static struct {
    struct ntbmsg_endpoint_stats stats;
    uint64_t behind;
} counted = {.stats = {.size = sizeof(struct ntbmsg_endpoint_stats)}, .behind = 0x5a5a5a5a5a5a5a5a};
static struct {
    struct rte_pmd_plx_ntb_info info;
    uint64_t behind;
} known = {.info = {.size = sizeof(struct rte_pmd_plx_ntb_info)}, .behind = 0x5a5a5a5a5a5a5a5a};

static int on_endpoints(void)
{
    struct ntbmsg_endpoint_options options = {.size = sizeof(options), .queues = 2, .buffers = 256};
    struct ntbmsg_endpoint *near = NULL, *far = NULL;

    EXPECT(ntbmsg_endpoint_open("raw_plx_ntb0", &options, &near) == 0);
    EXPECT(ntbmsg_endpoint_open("raw_plx_ntb1", &options, &far) == 0);
    EXPECT(ntbmsg_endpoint_wait_connected(near, 20000) == 0);
    EXPECT(ntbmsg_endpoint_stats_get(near, &counted.stats) == 0);
    EXPECT(counted.stats.size == sizeof(counted.stats));
    EXPECT(counted.stats.links == 1);
    EXPECT(counted.behind == 0x5a5a5a5a5a5a5a5a);
    EXPECT(ntbmsg_endpoint_close(near) == 0);
    EXPECT(ntbmsg_endpoint_close(far) == 0);
    return 0;
}

static int on_the_device(void)
{
    struct rte_pmd_plx_ntb_config config = {.size = sizeof(config), .queues = 3, .buffers = 512};
    struct rte_rawdev_info info = {.dev_private = &config};
    int id = rte_pmd_plx_ntb_find("raw_plx_ntb0");

    EXPECT(id >= 0);
    EXPECT(rte_rawdev_configure((uint16_t)id, &info, sizeof(config)) == 0);
    memset(&info, 0, sizeof(info));
    info.dev_private = &known.info;
    EXPECT(rte_rawdev_info_get((uint16_t)id, &info, sizeof(known.info)) == 0);
    EXPECT(known.info.queues == 3);
    EXPECT(known.info.buffers == 512);
    EXPECT(known.behind == 0x5a5a5a5a5a5a5a5a);
    return 0;
}

int main(int argc, char **argv)
{
    int failed;

    if (rte_eal_init(argc, argv) < 0)
        return 1;
    failed = on_endpoints() != 0 || on_the_device() != 0;
    rte_eal_cleanup();
    return failed;
}
