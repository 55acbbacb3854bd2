/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two hosts say hello: the smallest complete program on ntbmsg, in plain C11.
 *
 *     hello_c [EAL options] -- listen      answers every message until the peer leaves
 *     hello_c [EAL options] -- say         sends a few messages and prints the answers
 *
 * Neither has to be started first. Without a card, two processes of one machine connect over the
 * software twin, in a folder D of their user (where 2 MB hugepages are few: --no-huge -m 256
 * --no-shconf for --in-memory):
 *
 *     hello_c -l 0 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=$D/cable -- listen
 *     hello_c -l 1 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=$D/cable -- say
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
#define HELLOS 5
#define PEER_TIMEOUT_MS 10000
#define MOST_LOOKS 1000000000u /* some seconds of a peer that does not receive */
#define QUEUE 0

/* Has the peer gone since the last look? */
static bool peer_left(struct ntbmsg_endpoint *endpoint)
{
    enum ntbmsg_event event;
    bool left = false;

    while (ntbmsg_endpoint_event_poll(endpoint, &event) == 1)
        left = left || event == NTBMSG_EVENT_LOST;
    return left;
}

/* Sends one text. A full ring is no error: the peer takes something out, and the next try goes. */
static int send_text(struct ntbmsg_endpoint *endpoint, const char *text, uint64_t number)
{
    struct rte_mbuf *message = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(endpoint));
    const struct ntbmsg_meta meta = {.data = number};
    const size_t bytes = strlen(text);
    char *room;
    unsigned int looks = 0;
    int sent;

    if (message == NULL)
        return -ENOMEM;
    room = rte_pktmbuf_append(message, (uint16_t)bytes);
    if (room == NULL) {
        rte_pktmbuf_free(message);
        return -EMSGSIZE;
    }
    memcpy(room, text, bytes);
    do
        sent = ntbmsg_queue_send_burst(endpoint, QUEUE, &message, &meta, 1);
    while (sent == 0 && ++looks < MOST_LOOKS); /* 0: the peer does not receive just now */
    if (sent == 0)
        sent = -ETIMEDOUT;
    if (sent < 0)
        rte_pktmbuf_free(message); /* what was not taken stays ours */
    return sent < 0 ? sent : 0;
}

/*
 * Polls for one message and copies its text out. @return 1 and *text, 0 the peer left, or
 * -ETIMEDOUT.
 */
static int receive_text(struct ntbmsg_endpoint *endpoint, char *text, size_t room, uint64_t *number)
{
    const uint64_t deadline = rte_get_timer_cycles() + PEER_TIMEOUT_MS * rte_get_timer_hz() / 1000;
    struct rte_mbuf *message;
    struct ntbmsg_meta meta;
    size_t bytes;

    while (ntbmsg_queue_recv_burst(endpoint, QUEUE, &message, &meta, 1) != 1) {
        if (peer_left(endpoint))
            return 0;
        if (rte_get_timer_cycles() > deadline)
            return -ETIMEDOUT;
    }
    /* What comes from the peer is bounded here, whatever it says. */
    bytes = rte_pktmbuf_data_len(message);
    if (bytes > room - 1)
        bytes = room - 1;
    memcpy(text, rte_pktmbuf_mtod(message, char *), bytes);
    text[bytes] = '\0';
    *number = meta.data;
    rte_pktmbuf_free(message);
    return 1;
}

static int listen_role(struct ntbmsg_endpoint *endpoint)
{
    char text[128], answer[160];
    uint64_t number;
    int rc;

    while ((rc = receive_text(endpoint, text, sizeof(text), &number)) == 1) {
        printf("heard  %" PRIu64 ": %s\n", number, text);
        snprintf(answer, sizeof(answer), "you said \"%s\"", text);
        rc = send_text(endpoint, answer, number);
        if (rc < 0)
            return rc;
    }
    return rc;
}

static int say_role(struct ntbmsg_endpoint *endpoint)
{
    char text[160];
    uint64_t number, i;
    int rc;

    for (i = 0; i < HELLOS; ++i) {
        snprintf(text, sizeof(text), "hello number %" PRIu64, i);
        rc = send_text(endpoint, text, i);
        if (rc == 0)
            rc = receive_text(endpoint, text, sizeof(text), &number);
        if (rc != 1)
            return rc == 0 ? -ENOTCONN : rc;
        printf("answer %" PRIu64 ": %s\n", number, text);
    }
    return 0;
}

static int talk(bool listens)
{
    struct ntbmsg_endpoint *endpoint;
    char why[96];
    int rc = ntbmsg_endpoint_open(DEVICE, NULL, &endpoint);

    if (rc != 0)
        return rc; /* the library has said why */
    rc = ntbmsg_endpoint_wait_connected(endpoint, PEER_TIMEOUT_MS);
    if (rc == 0) {
        rc = listens ? listen_role(endpoint) : say_role(endpoint);
    } else {
        ntbmsg_endpoint_link_reason_get(endpoint, why, sizeof(why));
        fprintf(stderr, "hello_c: no peer: %s\n", why);
    }
    if (rc != 0)
        fprintf(stderr, "hello_c: %s\n", strerror(-rc));
    ntbmsg_endpoint_close(endpoint);
    return rc;
}

int main(int argc, char **argv)
{
    int rc = rte_eal_init(argc, argv);

    if (rc < 0)
        return EXIT_FAILURE;
    argc -= rc;
    argv += rc;
    if (argc == 2 && (strcmp(argv[1], "listen") == 0 || strcmp(argv[1], "say") == 0)) {
        rc = talk(strcmp(argv[1], "listen") == 0);
    } else {
        fprintf(stderr, "usage: hello_c [EAL options] -- listen|say\n");
        rc = -EINVAL;
    }
    rte_eal_cleanup();
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
