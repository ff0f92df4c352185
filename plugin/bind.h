/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the values of a program's symbols from the shapes of its inputs.
 *
 * A dimension that is linear in exactly one symbol without a value determines that symbol's value.
 * All other dimensions are checked. A contradiction is an error that names the input, the axis, the
 * expected and the actual size.
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

/* Returns whether the symbol has a value, and sets *value to it. */
bool xm_bindings_find(const struct xm_bindings *b, const char *symbol, int64_t *value);
/* Adds a value for the symbol or replaces its value. A failure: more than XM_MAX_BINDINGS
 * symbols. */
enum xm_status xm_bindings_set(struct xm_bindings *b, const char *symbol, int64_t value,
                               struct xm_error *err);
/* XM_INVALID: the tensor's element type, rank or number of bytes does not fit the port. */
enum xm_status xm_port_check(const struct xm_port *port, const struct xm_host_tensor *t,
                             struct xm_error *err);
/* XM_INVALID: an integer of an input that indexes the rows of a table is out of the table's
 * range. */
enum xm_status xm_port_check_rows(const struct xm_port *port,
                                  const struct xm_host_tensor *t, struct xm_error *err);
/* Binds the symbols that the shapes of the tensors determine; tensors[i] belongs to ports[i]. */
enum xm_status xm_bindings_from_ports(struct xm_bindings *b, const struct xm_port *ports,
                                      const struct xm_host_tensor *tensors, uint32_t n,
                                      struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
