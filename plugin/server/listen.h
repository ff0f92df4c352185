/* SPDX-License-Identifier: Apache-2.0
 *
 * A listening socket.
 */
#ifndef XM_PLUGIN_SERVER_LISTEN_H
#define XM_PLUGIN_SERVER_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_listener {
    int fd; /* owned; -1: closed, or owned by another */
    uint16_t port;
    bool is_loopback; /* it can only be reached from this machine */
};

/* Opens a listening socket. Port 0: any free port. XM_BUSY: the port is in use. XM_NOT_FOUND: there
 * is no such address. */
enum xm_status xm_listen(const char *host, uint16_t port, struct xm_listener *out,
                         struct xm_error *err);
/* is_given: whether a service manager has opened sockets for this process (systemd's LISTEN_FDS).
 * take_given: takes the first of them. XM_INVALID: it is not a listening socket. */
bool xm_listener_is_given(void);
enum xm_status xm_listener_take_given(struct xm_listener *out, struct xm_error *err);
void xm_listener_close(struct xm_listener *l);

#ifdef __cplusplus
}
#endif
#endif
