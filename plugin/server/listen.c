/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/util/log.h"
#include "runtime/util/number.h"

enum {
    BACKLOG = 128,
    /* first inherited descriptor: SD_LISTEN_FDS_START of sd_listen_fds(3) */
    FIRST_GIVEN = 3
};

static bool
is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)a;
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static uint16_t
port_of(int fd)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof(a);
    if (getsockname(fd, (struct sockaddr *)&a, &n) != 0)
        return 0;
    if (a.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&a)->sin6_port);
    return ntohs(((const struct sockaddr_in *)&a)->sin_port);
}

static enum xm_status
open_at(const struct addrinfo *a, const char *host, uint16_t port,
        struct xm_listener *out, struct xm_error *err)
{
    const int one = 1;
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return xm_fail(err, XM_IO, "a socket cannot be created: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        const int why = errno;
        close(fd);
        return why == EADDRINUSE
                   ? xm_fail(err, XM_BUSY,
                             "port %u of '%.100s' is in use by another program: choose "
                             "another "
                             "port",
                             port, host)
                   : xm_fail(err, XM_IO, "cannot listen on port %u of '%.100s': %s", port,
                             host, strerror(why));
    }
    out->fd = fd;
    out->port = port_of(fd);
    out->is_loopback = is_loopback(a->ai_addr);
    return XM_OK;
}

enum xm_status
xm_listen(const char *host, uint16_t port, struct xm_listener *out, struct xm_error *err)
{
    const struct addrinfo wish = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                  .ai_family = AF_UNSPEC,
                                  .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char number[8];
    *out = (struct xm_listener){.fd = -1};
    snprintf(number, sizeof(number), "%u", port);
    const int why = getaddrinfo(host, number, &wish, &found);
    if (why != 0)
        return xm_fail(err, XM_NOT_FOUND, "there is no address '%.100s' to listen on: %s",
                       host, gai_strerror(why));
    enum xm_status s = XM_NOT_FOUND;
    for (const struct addrinfo *a = found; a && s != XM_OK; a = a->ai_next) {
        struct xm_error other = {0};
        s = open_at(a, host, port, out, a == found ? err : &other);
    }
    freeaddrinfo(found);
    if (s == XM_OK && err)
        *err = (struct xm_error){0};
    return s == XM_OK || !err ? s : err->status; /* the error of the first address */
}

bool
xm_listener_is_given(void)
{
    const char *pid = xm_env("LISTEN_PID"), *count = xm_env("LISTEN_FDS");
    uint64_t of = 0, n = 0;
    return pid && count && xm_parse_whole(pid, &of) && of == (uint64_t)getpid() &&
           xm_parse_whole(count, &n) && n > 0;
}

enum xm_status
xm_listener_take_given(struct xm_listener *out, struct xm_error *err)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof(a);
    int listens = 0;
    socklen_t size = sizeof(listens);
    *out = (struct xm_listener){.fd = -1};
    if (getsockopt(FIRST_GIVEN, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
        !listens || getsockname(FIRST_GIVEN, (struct sockaddr *)&a, &n) != 0)
        return xm_fail(
            err, XM_INVALID,
            "LISTEN_FDS is set, but file descriptor %d is not a listening socket",
            FIRST_GIVEN);
    fcntl(FIRST_GIVEN, F_SETFD, FD_CLOEXEC);
    out->fd = FIRST_GIVEN;
    out->port = port_of(FIRST_GIVEN);
    out->is_loopback = is_loopback((const struct sockaddr *)&a);
    return XM_OK;
}

void
xm_listener_close(struct xm_listener *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}
