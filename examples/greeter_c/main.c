/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server of many channels and its client, in plain C11.
 *
 *     greeter_c [EAL options] -- serve N     answers on every channel, until N of them have closed
 *     greeter_c [EAL options] -- greet N     opens N channels, greets on each, prints the answers
 *
 * Neither has to be started first. Without a card, two processes of one machine connect over the
 * software twin, in a folder D of their user (where 2 MB hugepages are few: --no-huge -m 256
 * --no-shconf for --in-memory):
 *
 *     greeter_c -l 0 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=$D/cable -- serve 3
 *     greeter_c -l 1 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=$D/cable -- greet 3
 *
 * Each side has one worker and runs to completion: its one thread polls, and whatever a poll
 * reports is done before the next one.
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
#define PORT 7
#define BURST 32
#define MOST_CHANNELS 1000
#define PEER_TIMEOUT_MS 30000

struct host {
    struct ntbmsg_endpoint *endpoint;
    struct ntbmsg_worker *worker;
    struct ntbmsg_poll_set *set;
    uint64_t deadline; /* of the whole talk, in timer cycles */
    unsigned int open; /* channels that this side has a handle of */
    unsigned int done; /* channels that have come to their end */
};

static bool too_late(const struct host *host)
{
    return rte_get_timer_cycles() > host->deadline;
}

/* Sends one text. A short count is back-pressure: polling takes the peer's credit in. */
static int send_text(struct host *host, struct ntbmsg_channel *channel, const char *text)
{
    struct rte_mbuf *message = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(host->endpoint));
    const uint16_t bytes = (uint16_t)strlen(text);
    char *room = message != NULL ? rte_pktmbuf_append(message, bytes) : NULL;
    int sent = room != NULL ? 0 : -ENOMEM;

    if (room != NULL)
        memcpy(room, text, bytes);
    while (sent == 0) {
        sent = ntbmsg_channel_send_burst(channel, &message, NULL, 1);
        if (sent == 0 && too_late(host))
            sent = -ETIMEDOUT;
        if (sent == 0)
            ntbmsg_worker_poll(host->worker);
    }
    if (sent < 0)
        rte_pktmbuf_free(message); /* what was not taken stays ours */
    return sent < 0 ? sent : 0;
}

/* Copies the text of a message out, whatever length the peer gave it, and frees the message. */
static void take_text(struct rte_mbuf *message, char *text, size_t room)
{
    size_t bytes = rte_pktmbuf_data_len(message);

    if (bytes > room - 1)
        bytes = room - 1;
    memcpy(text, rte_pktmbuf_mtod(message, char *), bytes);
    text[bytes] = '\0';
    rte_pktmbuf_free(message);
}

/*
 * Receives what a channel has: the server answers it, the client prints it and is done.
 * @return 0; 1 the peer sends no more; a negative errno
 */
static int receive(struct host *host, struct ntbmsg_channel *channel, bool serves)
{
    struct rte_mbuf *messages[BURST];
    char text[128], answer[160];
    int got, i, rc = 0;

    while ((got = ntbmsg_channel_recv_burst(channel, messages, NULL, BURST)) > 0) {
        for (i = 0; i < got; ++i) {
            take_text(messages[i], text, sizeof(text));
            if (!serves) {
                printf("answer: %s\n", text);
                ntbmsg_channel_shutdown(channel); /* nothing more to say */
                continue;
            }
            printf("heard: %s\n", text);
            snprintf(answer, sizeof(answer), "welcome, %s", text);
            if (rc == 0)
                rc = send_text(host, channel, answer);
        }
    }
    if (rc != 0)
        return rc;
    return got == -ESHUTDOWN ? 1 : got;
}

/* What a poll has reported of a channel. */
static int handle(struct host *host, const struct ntbmsg_ready *ready, bool serves)
{
    int rc = 0;

    if (ready->events & NTBMSG_ANSWERED) {
        const char *name = ready->user; /* ours, as the client connected */

        if (ntbmsg_channel_state_get(ready->channel) != NTBMSG_CHANNEL_OPEN)
            rc = -ECONNREFUSED;
        else
            rc = send_text(host, ready->channel, name);
    }
    if (rc == 0 && (ready->events & NTBMSG_READABLE))
        rc = receive(host, ready->channel, serves);
    if (rc == 1) { /* all that the peer sent was received; what was sent to it still arrives */
        ntbmsg_channel_close(ready->channel);
        --host->open;
        ++host->done;
        rc = 0;
    } else if (rc == 0 && (ready->events & NTBMSG_ENDED)) {
        rc = -ECONNRESET; /* not by a shutdown */
    }
    return rc;
}

/* Accepts every connection. */
static int accept_all(struct host *host, struct ntbmsg_listener *listener)
{
    struct ntbmsg_channel_options options;
    struct ntbmsg_request request;
    struct ntbmsg_channel *channel;
    int rc;

    ntbmsg_channel_options_init(&options);
    options.set = host->set;
    while (ntbmsg_listener_poll(listener, host->worker, &request) == 1) {
        rc = ntbmsg_channel_accept(&request, &options, &channel);
        if (rc != 0 && rc != -ENOENT) /* ENOENT: it has given up meanwhile */
            return rc;
        host->open += rc == 0;
    }
    return 0;
}

static int poll_until(struct host *host, struct ntbmsg_listener *listener, unsigned int wanted)
{
    struct ntbmsg_ready ready[BURST];
    int n, i, rc = 0;

    while (rc == 0 && host->done < wanted) {
        n = ntbmsg_poll_set_poll(host->set, ready, BURST);
        for (i = 0; i < n && rc == 0; ++i)
            rc = handle(host, &ready[i], listener != NULL);
        if (rc == 0 && listener != NULL)
            rc = accept_all(host, listener);
        if (rc == 0 && too_late(host))
            rc = -ETIMEDOUT;
    }
    return rc;
}

/* Until the client has taken all and gone: what lies unread in its memory goes with this host. */
static int await_leave(struct host *host)
{
    enum ntbmsg_event event;

    while (!too_late(host)) {
        ntbmsg_worker_poll(host->worker);
        if (ntbmsg_endpoint_event_poll(host->endpoint, &event) == 1 && event == NTBMSG_EVENT_LOST)
            return 0;
    }
    return -ETIMEDOUT;
}

static int serve(struct host *host, struct ntbmsg_listener *listener, unsigned int wanted)
{
    const int rc = poll_until(host, listener, wanted);

    return rc == 0 ? await_leave(host) : rc;
}

static int greet(struct host *host, unsigned int wanted)
{
    static char names[MOST_CHANNELS][24];
    static struct ntbmsg_channel *channels[MOST_CHANNELS];
    struct ntbmsg_channel_options options;
    unsigned int i;
    int rc = 0;

    ntbmsg_channel_options_init(&options);
    options.set = host->set;
    for (i = 0; i < wanted && rc == 0; ++i) {
        snprintf(names[i], sizeof(names[i]), "guest %u", i);
        options.user = names[i];
        rc = ntbmsg_channel_connect(host->worker, PORT, &options, &channels[i]);
        host->open += rc == 0;
    }
    return rc == 0 ? poll_until(host, NULL, wanted) : rc;
}

static int talk(struct host *host, struct ntbmsg_listener *listener, unsigned int channels)
{
    char why[96];
    int rc = ntbmsg_endpoint_wait_connected(host->endpoint, PEER_TIMEOUT_MS);

    if (rc != 0) {
        ntbmsg_endpoint_link_reason_get(host->endpoint, why, sizeof(why));
        fprintf(stderr, "greeter_c: no peer: %s\n", why);
        return rc;
    }
    rc = ntbmsg_poll_set_create(host->worker, &host->set);
    if (rc != 0)
        return rc;
    rc = listener != NULL ? serve(host, listener, channels) : greet(host, channels);
    printf("%u channels came to their end, %u are still open\n", host->done, host->open);
    return rc;
}

static int run(bool serves, unsigned int channels)
{
    struct ntbmsg_endpoint_options options;
    struct ntbmsg_listener *listener = NULL;
    struct host host = {0};
    int rc = 0;

    ntbmsg_endpoint_options_init(&options);
    options.workers = 1;
    if (serves) /* before a client can be there */
        rc = ntbmsg_listener_open(PORT, MOST_CHANNELS, &listener);
    if (rc == 0)
        rc = ntbmsg_endpoint_open(DEVICE, &options, &host.endpoint);
    if (rc == 0) {
        host.worker = ntbmsg_endpoint_worker(host.endpoint, 0);
        host.deadline = rte_get_timer_cycles() + 2 * PEER_TIMEOUT_MS * rte_get_timer_hz() / 1000;
        rc = talk(&host, listener, channels);
    }
    if (rc != 0)
        fprintf(stderr, "greeter_c: %s\n", strerror(-rc));
    ntbmsg_listener_close(listener);
    ntbmsg_endpoint_close(host.endpoint); /* ends what is still open */
    ntbmsg_poll_set_destroy(host.set);
    return rc;
}

int main(int argc, char **argv)
{
    unsigned long channels;
    int rc = rte_eal_init(argc, argv);

    if (rc < 0)
        return EXIT_FAILURE;
    argc -= rc;
    argv += rc;
    channels = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (channels >= 1 && channels <= MOST_CHANNELS &&
        (strcmp(argv[1], "serve") == 0 || strcmp(argv[1], "greet") == 0)) {
        rc = run(strcmp(argv[1], "serve") == 0, (unsigned int)channels);
    } else {
        fprintf(stderr, "usage: greeter_c [EAL options] -- serve|greet CHANNELS (1 to %d)\n",
                MOST_CHANNELS);
        rc = -EINVAL;
    }
    rte_eal_cleanup();
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
