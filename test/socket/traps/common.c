// SPDX-License-Identifier: BSD-3-Clause
// What all cases stand on.
#include "traps.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

int listener;
struct sockaddr_in place;

void see(const char *what, long result)
{
    printf("%s %ld%s%s\n", what, result, result < 0 ? " " : "",
           result < 0 ? strerrorname_np(errno) : "");
}

void listen_here(void)
{
    socklen_t length = sizeof(place);
    listener = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    place = (struct sockaddr_in){.sin_family = AF_INET};
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(bind(listener, (struct sockaddr *)&place, sizeof(place)));
    MUST(listen(listener, 16));
    MUST(getsockname(listener, (struct sockaddr *)&place, &length));
}

unsigned long long sent_by_tcp(const int *ends)
{
    unsigned long long sent = 0;
    for (int end = 0; end < 2; end++) {
        struct tcp_info info = {0};
        socklen_t length = sizeof(info);
        MUST(getsockopt(ends[end], IPPROTO_TCP, TCP_INFO, &info, &length));
        sent += info.tcpi_bytes_sent;
    }
    return sent;
}

void exchange(const int *ends, int round)
{
    char there[100], back[sizeof(there)];
    for (unsigned i = 0; i < sizeof(there); i++)
        there[i] = (char)(round * 7 + (int)i);
    for (int way = 0; way < 2; way++)
        if (send(ends[way], there, sizeof(there), 0) != (long)sizeof(there) ||
            recv(ends[1 - way], back, sizeof(back), MSG_WAITALL) != (long)sizeof(back) ||
            memcmp(there, back, sizeof(back)) != 0)
            fail("a round");
}

// With TRAPS_WARM in the environment a case begins with connections that are rings already: TCP
// carries nothing of an exchange any more. A daemon may be late, and then a claim ends without its
// mirror, for good after 2 s.
static void warm(const int *ends)
{
    const time_t end = time(NULL) + 4;
    unsigned long long before = 0;
    do {
        exchange(ends, 0);
        before = sent_by_tcp(ends);
        exchange(ends, 1);
    } while (sent_by_tcp(ends) != before && time(NULL) < end);
}

void connect_pair(int *ends)
{
    if (listener == 0)
        listen_here();
    ends[0] = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(connect(ends[0], (struct sockaddr *)&place, sizeof(place)));
    ends[1] = (int)MUST(accept(listener, NULL, NULL));
    if (getenv("TRAPS_WARM") != NULL)
        warm(ends);
}

void say(int fd, const char *text)
{
    see("said", send(fd, text, strlen(text), MSG_NOSIGNAL));
}

void hear(int fd)
{
    char text[64] = "";
    see("heard", recv(fd, text, sizeof(text) - 1, 0));
    printf("text '%s'\n", text);
}

void talk(int *ends)
{
    say(ends[0], "there");
    hear(ends[1]);
    say(ends[1], "and back");
    hear(ends[0]);
}

void talk_long(int *ends)
{
    for (int round = 0; round < 5000; round++)
        exchange(ends, round);
    puts("all as sent");
}

void await_child(pid_t child)
{
    int status = 0;
    MUST(waitpid(child, &status, 0));
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}
