/* SPDX-License-Identifier: Apache-2.0
 *
 * A socket that listens.
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
    int fd; /* owned; -1: closed, or another's */
    uint16_t port;
    bool is_loopback; /* of this machine alone */
};

/* Port 0: one that is free. XM_BUSY: the port is in use. XM_NOT_FOUND: there is no such address. */
enum xm_status xm_listen(const char *host, uint16_t port, struct xm_listener *out,
                         struct xm_error *err);
/* Whether a service manager has opened sockets for this process (systemd's LISTEN_FDS), and the
 * first of them. XM_INVALID: it is no socket that listens. */
bool xm_listener_is_given(void);
enum xm_status xm_listener_take_given(struct xm_listener *out, struct xm_error *err);
void xm_listener_close(struct xm_listener *l);

#ifdef __cplusplus
}
#endif
#endif
