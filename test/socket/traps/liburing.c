// SPDX-License-Identifier: BSD-3-Clause
// In place of liburing: it sets a ring of the kernel's up by a system call of its own, which no
// library in front of libc sees.
#include <sys/syscall.h>

int io_uring_queue_init(unsigned entries, void *ring, unsigned flags);

// Of a ring this keeps its descriptor, and behind it, at 8 bytes, the struct that the kernel fills
// in.
int io_uring_queue_init(unsigned entries, void *ring, unsigned flags)
{
    unsigned *settings = (unsigned *)ring + 2;
    settings[2] = flags; // struct io_uring_params: sq_entries, cq_entries, flags
    long result = SYS_io_uring_setup;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"((long)entries), "S"(settings)
                     : "rcx", "r11", "memory");
    *(int *)ring = (int)result;
    return result < 0 ? (int)result : 0;
}
