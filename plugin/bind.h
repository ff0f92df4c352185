/* SPDX-License-Identifier: Apache-2.0
 *
 * Values for a program's symbols from the shapes of its inputs.
 *
 * A dimension that is one unknown symbol, or linear in one, gives it its value;
 * everything else is checked. Contradictions are errors that name input, axis, expected
 * and found.
 */
#ifndef XM_PLUGIN_BIND_H
#define XM_PLUGIN_BIND_H

#include "plugin/port.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_MAX_BINDINGS = 32 };

struct xm_bindings {
    struct xm_binding list[XM_MAX_BINDINGS];
    uint32_t n;
};

/* The value of a symbol; false when it has none. */
bool xm_bindings_find(const struct xm_bindings *b, const char *symbol, int64_t *value);
/* Adds or replaces. */
enum xm_status xm_bindings_set(struct xm_bindings *b, const char *symbol, int64_t value,
                               struct xm_error *err);
/* Whether a tensor can be the port's: element type, rank, bytes for its shape. */
enum xm_status xm_port_check(const struct xm_port *port, const struct xm_host_tensor *t,
                             struct xm_error *err);
/* Whether all integers of an input lie in the table that they choose rows of. */
enum xm_status xm_port_check_rows(const struct xm_port *port,
                                  const struct xm_host_tensor *t, struct xm_error *err);
/* Binds what the ports' shapes fix; tensors[i] belongs to ports[i]. */
enum xm_status xm_bindings_from_ports(struct xm_bindings *b, const struct xm_port *ports,
                                      const struct xm_host_tensor *tensors, uint32_t n,
                                      struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
