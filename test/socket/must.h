// SPDX-License-Identifier: BSD-3-Clause
// A call that has to succeed, in programs that are run under the library.
#ifndef TEST_SOCKET_MUST_H
#define TEST_SOCKET_MUST_H

#include <stdio.h>
#include <stdlib.h>

static inline void fail(const char *what)
{
    perror(what);
    exit(1);
}

#define MUST(call)                                                                                 \
    __extension__({                                                                                \
        const long result_ = (long)(call);                                                         \
        if (result_ < 0)                                                                           \
            fail(#call);                                                                           \
        result_;                                                                                   \
    })

#endif
