// SPDX-License-Identifier: BSD-3-Clause
// Rings of the kernel's, io_uring: their requests pass the preload.
#include "traps.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// Of liburing.c.
int io_uring_queue_init(unsigned entries, void *ring, unsigned flags);

struct ring {
    int fd;
    struct io_uring_params settings;
};

static void *map(const struct ring *ring, size_t bytes, off_t offset)
{
    void *at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, offset);
    if (at == MAP_FAILED)
        fail("mmap");
    return at;
}

// Has the kernel receive from fd, and the other end send meanwhile.
static void receive(const struct ring *ring, int fd, int other)
{
    const struct io_uring_params *p = &ring->settings;
    char *requests =
        map(ring, p->sq_off.array + p->sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    char *results =
        map(ring, p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    struct io_uring_sqe *entry = map(ring, p->sq_entries * sizeof(*entry), IORING_OFF_SQES);
    static char text[64];
    memset(entry, 0, sizeof(*entry));
    entry->opcode = IORING_OP_RECV;
    entry->fd = fd;
    entry->addr = (unsigned long)text;
    entry->len = sizeof(text) - 1;
    *(unsigned *)(requests + p->sq_off.array) = 0;
    __atomic_store_n((unsigned *)(requests + p->sq_off.tail), 1, __ATOMIC_RELEASE);
    see("submitted", syscall(SYS_io_uring_enter, ring->fd, 1, 0, 0, NULL, 0));
    say(other, "for the kernel");
    see("waited", syscall(SYS_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0));
    see("received", ((struct io_uring_cqe *)(results + p->cq_off.cqes))->res);
    printf("text '%s'\n", text);
}

static void use_ring(int (*set_up)(struct ring *))
{
    int ends[2], later[2];
    connect_pair(ends);
    talk_long(ends);
    struct ring ring = {.fd = -1};
    const int result = set_up(&ring);
    see("set up", result);
    if (result < 0) // the kernel, or a sandbox, has none
        return;
    receive(&ring, ends[1], ends[0]);
    talk(ends);
    connect_pair(later);
    talk_long(later);
    MUST(close(ring.fd));
}

static int by_liburing(struct ring *ring)
{
    return io_uring_queue_init(4, ring, 0);
}

static int by_syscall(struct ring *ring)
{
    ring->fd = (int)syscall(SYS_io_uring_setup, 4, &ring->settings);
    return ring->fd < 0 ? -errno : 0;
}

static void case_io_uring(void)
{
    use_ring(by_liburing);
}

static void case_io_uring_syscall(void)
{
    use_ring(by_syscall);
}

const struct trap uring_traps[] = {
    {"io_uring", case_io_uring}, {"io_uring_syscall", case_io_uring_syscall}, {NULL, NULL}};
