/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations and a completion queue, in plain C11: a host shares a board, and its peer
 * writes on it, counts in it and reads it back. They are experimental: compile with
 * -DALLOW_EXPERIMENTAL_API.
 *
 *     board_c [EAL options] -- share      exposes memory, and prints each line that arrives
 *     board_c [EAL options] -- write N    writes N lines, counts them in the peer's memory by
 *                                         fetch-and-add, and reads all back
 *
 * Neither has to be started first. Without a card, two processes of one machine connect over the
 * software twin, in a folder D of their user (where 2 MB hugepages are few: --no-huge -m 256
 * --no-shconf for --in-memory):
 *
 *     board_c -l 0 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=$D/cable -- share
 *     board_c -l 1 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=$D/cable -- write 5
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include <ntbmsg.h>

#define DEVICE "raw_plx_ntb0"
#define PORT 8
#define MOST_LINES 100
#define PEER_TIMEOUT_MS 30000
#define COMPLETIONS 256

/* What the board looks like at both hosts. */
struct board {
    uint64_t count; /* lines, added up by the writer */
    char lines[MOST_LINES][64];
};

struct host {
    struct ntbmsg_endpoint *endpoint;
    struct ntbmsg_worker *worker;
    struct ntbmsg_cq *cq;
    struct ntbmsg_channel *channel;
    uint64_t deadline; /* of the whole talk, in timer cycles */
};

static bool too_late(const struct host *host)
{
    return rte_get_timer_cycles() > host->deadline;
}

/* Polls for one completion; a worker that runs to completion is polled for it. */
static int await_completion(struct host *host, struct ntbmsg_completion *completion)
{
    while (ntbmsg_cq_poll(host->cq, completion, 1) != 1) {
        if (ntbmsg_channel_state_get(host->channel) != NTBMSG_CHANNEL_OPEN)
            return -ESHUTDOWN;
        if (too_late(host))
            return -ETIMEDOUT;
        ntbmsg_worker_poll(host->worker);
    }
    return completion->status;
}

/* Posts one operation and waits for its completion; its own memory is used until then. */
static int operate(struct host *host, struct ntbmsg_work *work, uint64_t *value)
{
    struct ntbmsg_completion completion;
    int rc;

    work->flags = NTBMSG_WORK_SIGNAL | NTBMSG_WORK_CONFIRM;
    while ((rc = ntbmsg_channel_post_burst(host->channel, work, 1)) == 0 && !too_late(host))
        ntbmsg_worker_poll(host->worker);
    if (rc != 1)
        return rc == 0 ? -ETIMEDOUT : rc;
    rc = await_completion(host, &completion);
    if (rc == 0 && completion.id != work->id)
        rc = -EPROTO;
    if (rc == 0 && value != NULL)
        *value = completion.value;
    return rc;
}

/* A token is bytes, to be sent by any way: here as a message of the channel itself. */
static int send_token(struct host *host, const struct ntbmsg_region *region)
{
    struct rte_mbuf *message = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(host->endpoint));
    struct ntbmsg_region_token token;
    char *room;
    int rc = message != NULL ? ntbmsg_region_token_get(region, &token) : -ENOMEM;

    if (rc == 0) {
        room = rte_pktmbuf_append(message, sizeof(token));
        memcpy(room, &token, sizeof(token));
        while ((rc = ntbmsg_channel_send_burst(host->channel, &message, NULL, 1)) == 0 &&
               !too_late(host))
            ntbmsg_worker_poll(host->worker);
        if (rc == 1)
            return 0;
    }
    rte_pktmbuf_free(message);
    return rc == 0 ? -ETIMEDOUT : rc;
}

static int receive_token(struct host *host, struct ntbmsg_region_token *token)
{
    struct rte_mbuf *message;
    int got;

    while ((got = ntbmsg_channel_recv_burst(host->channel, &message, NULL, 1)) == 0)
        if (too_late(host))
            return -ETIMEDOUT;
    if (got < 0)
        return got;
    got = rte_pktmbuf_data_len(message) == sizeof(*token) ? 0 : -EPROTO;
    if (got == 0)
        memcpy(token, rte_pktmbuf_mtod(message, void *), sizeof(*token));
    rte_pktmbuf_free(message);
    return got;
}

/* The exposing side: the immediate data of each WRITE_IMM say which line is there now. */
static int read_board(struct host *host, const struct board *board)
{
    struct ntbmsg_completion completion;
    int rc;

    while ((rc = await_completion(host, &completion)) == 0) {
        if (completion.op != NTBMSG_OP_RECV_IMM || completion.imm >= MOST_LINES)
            return -EPROTO;
        printf("notified of line %" PRIu32 ": %.63s\n", completion.imm,
               board->lines[completion.imm]);
    }
    if (rc == -ESHUTDOWN) /* the writer is done, and had an answer to all that it asked for */
        printf("%" PRIu64 " lines were counted\n", board->count);
    return rc == -ESHUTDOWN ? 0 : rc;
}

static int share(struct host *host, struct ntbmsg_listener *listener)
{
    const uint32_t rights = NTBMSG_RIGHT_WRITE | NTBMSG_RIGHT_READ | NTBMSG_RIGHT_ATOMIC;
    struct ntbmsg_region_info info = {.size = sizeof(info)};
    struct ntbmsg_channel_options options;
    struct ntbmsg_request request;
    struct ntbmsg_region *region;
    int rc = ntbmsg_region_alloc(host->endpoint, sizeof(struct board), rights, &region);

    if (rc != 0)
        return rc;
    ntbmsg_region_info_get(region, &info);
    ntbmsg_channel_options_init(&options);
    options.cq = host->cq;
    while (ntbmsg_listener_poll(listener, host->worker, &request) != 1 && !too_late(host))
        ntbmsg_worker_poll(host->worker);
    rc = too_late(host) ? -ETIMEDOUT : ntbmsg_channel_accept(&request, &options, &host->channel);
    if (rc == 0)
        rc = send_token(host, region);
    if (rc == 0)
        rc = read_board(host, info.address);
    ntbmsg_channel_close(host->channel);
    if (ntbmsg_region_release(region) != 0 && rc == 0)
        rc = -EIO;
    return rc;
}

static int write_lines(struct host *host, struct ntbmsg_remote *remote, unsigned int lines)
{
    static struct board copy; /* what is read back */
    char line[64];
    const struct ntbmsg_sge from = {.address = line, .bytes = sizeof(line)};
    const struct ntbmsg_sge to = {.address = &copy, .bytes = sizeof(copy)};
    struct ntbmsg_work write = {
        .remote = remote, .op = NTBMSG_OP_WRITE_IMM, .sges = &from, .sge_count = 1};
    struct ntbmsg_work count = {.remote = remote, .op = NTBMSG_OP_FETCH_ADD, .operand = 1};
    struct ntbmsg_work read = {.remote = remote, .op = NTBMSG_OP_READ, .sges = &to, .sge_count = 1};
    uint64_t before = 0;
    unsigned int i;
    int rc = 0;

    for (i = 0; i < lines && rc == 0; ++i) {
        memset(line, 0, sizeof(line));
        snprintf(line, sizeof(line), "this is line %u", i);
        write.id = ++count.id;
        write.imm = i;
        write.offset = offsetof(struct board, lines) + (uint64_t)i * sizeof(line);
        rc = operate(host, &write, NULL);
        if (rc == 0)
            rc = operate(host, &count, &before);
        if (rc == 0 && before != i)
            rc = -EPROTO;
    }
    if (rc == 0)
        rc = operate(host, &read, NULL);
    if (rc == 0)
        printf("the peer counted %" PRIu64 " lines, the last one is: %.63s\n", copy.count,
               copy.lines[lines - 1]);
    return rc;
}

static int write_board(struct host *host, unsigned int lines)
{
    struct ntbmsg_channel_options options;
    struct ntbmsg_region_token token;
    struct ntbmsg_remote *remote;
    int rc;

    ntbmsg_channel_options_init(&options);
    options.cq = host->cq;
    rc = ntbmsg_channel_connect(host->worker, PORT, &options, &host->channel);
    if (rc == 0)
        rc = ntbmsg_channel_wait_open(host->channel, PEER_TIMEOUT_MS);
    if (rc == 0)
        rc = receive_token(host, &token);
    if (rc == 0)
        rc = ntbmsg_remote_open(host->channel, &token, &remote);
    if (rc == 0) {
        rc = write_lines(host, remote, lines);
        ntbmsg_remote_close(remote);
    }
    ntbmsg_channel_shutdown(host->channel);
    /* This host leaves when the other one has seen the end. */
    while (rc == 0 && ntbmsg_channel_state_get(host->channel) == NTBMSG_CHANNEL_SHUT &&
           !too_late(host))
        ntbmsg_worker_poll(host->worker);
    ntbmsg_channel_close(host->channel);
    return rc;
}

/* @param lines  0: share */
static int run(unsigned int lines)
{
    struct ntbmsg_endpoint_options options;
    struct ntbmsg_listener *listener = NULL;
    struct host host = {0};
    int rc = 0;

    ntbmsg_endpoint_options_init(&options);
    options.workers = 1;
    if (lines == 0) /* before the writer can be there */
        rc = ntbmsg_listener_open(PORT, 0, &listener);
    if (rc == 0)
        rc = ntbmsg_endpoint_open(DEVICE, &options, &host.endpoint);
    if (rc == 0)
        rc = ntbmsg_cq_create(COMPLETIONS, NULL, NULL, &host.cq);
    if (rc == 0)
        rc = ntbmsg_endpoint_wait_connected(host.endpoint, PEER_TIMEOUT_MS);
    if (rc == 0) {
        host.worker = ntbmsg_endpoint_worker(host.endpoint, 0);
        host.deadline = rte_get_timer_cycles() + 2 * PEER_TIMEOUT_MS * rte_get_timer_hz() / 1000;
        rc = lines == 0 ? share(&host, listener) : write_board(&host, lines);
    }
    if (rc != 0)
        fprintf(stderr, "board_c: %s\n", strerror(-rc));
    ntbmsg_listener_close(listener);
    ntbmsg_endpoint_close(host.endpoint);
    ntbmsg_cq_destroy(host.cq);
    return rc;
}

int main(int argc, char **argv)
{
    unsigned long lines = 0;
    int rc = rte_eal_init(argc, argv);

    if (rc < 0)
        return EXIT_FAILURE;
    argc -= rc;
    argv += rc;
    if (argc == 3 && strcmp(argv[1], "write") == 0)
        lines = strtoul(argv[2], NULL, 10);
    if ((lines >= 1 && lines <= MOST_LINES) || (argc == 2 && strcmp(argv[1], "share") == 0)) {
        rc = run((unsigned int)lines);
    } else {
        fprintf(stderr, "usage: board_c [EAL options] -- share | write LINES (1 to %d)\n",
                MOST_LINES);
        rc = -EINVAL;
    }
    rte_eal_cleanup();
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
