/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/bind.h"

#include <ctype.h>
#include <string.h>

bool
xm_bindings_find(const struct xm_bindings *b, const char *symbol, int64_t *value)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (strcmp(b->list[i].symbol, symbol) == 0) {
            *value = b->list[i].value;
            return true;
        }
    }
    return false;
}

enum xm_status
xm_bindings_set(struct xm_bindings *b, const char *symbol, int64_t value,
                struct xm_error *err)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (strcmp(b->list[i].symbol, symbol) == 0) {
            b->list[i].value = value;
            return XM_OK;
        }
    }
    if (b->n == XM_MAX_BINDINGS)
        return xm_fail(err, XM_UNSUPPORTED, "more than %d symbolic dimensions",
                       XM_MAX_BINDINGS);
    b->list[b->n++] = (struct xm_binding){symbol, value};
    return XM_OK;
}

/* Returns the only symbol of the dimension that has no value yet; the text is the pool's. NULL:
 * there is none, or there are several (*several). */
static const char *
unknown_symbol(const struct xm_bindings *b, struct xm_dim d, bool *several)
{
    const char *unknown = NULL;
    int64_t value;
    *several = false;
    for (uint32_t i = 0; i < xm_dim_symbols(d); i++) {
        const char *name = xm_dim_symbol_name(d, i);
        if (xm_bindings_find(b, name, &value) || (unknown && strcmp(unknown, name) == 0))
            continue;
        *several |= unknown != NULL;
        unknown = name;
    }
    return *several ? NULL : unknown;
}

/* Solves d = value for `symbol`. d is linear in it: d(x) = d(0) + x (d(1) - d(0)). */
static enum xm_status
solve(struct xm_bindings *b, struct xm_dim d, const char *symbol, int64_t value,
      struct xm_error *err)
{
    int64_t at0 = 0, at1 = 0;
    struct xm_bindings trial = *b;
    XM_TRY(xm_bindings_set(&trial, symbol, 0, err));
    XM_TRY(xm_dim_eval(d, trial.list, trial.n, &at0, err));
    XM_TRY(xm_bindings_set(&trial, symbol, 1, err));
    XM_TRY(xm_dim_eval(d, trial.list, trial.n, &at1, err));
    int64_t slope = at1 - at0;
    if (slope == 0 || (value - at0) % slope != 0 || (value - at0) / slope < 0)
        return xm_fail(err, XM_INVALID, "no size of '%s' gives the dimension %lld",
                       symbol, (long long)value);
    return xm_bindings_set(b, symbol, (value - at0) / slope, err);
}

static enum xm_status
bind_dim(struct xm_bindings *b, struct xm_dim d, int64_t value, bool *again,
         struct xm_error *err)
{
    bool several;
    const char *symbol = unknown_symbol(b, d, &several);
    if (several) {
        *again = true;
        return XM_OK;
    }
    if (symbol)
        XM_TRY(solve(b, d, symbol, value, err));
    int64_t expected = 0;
    XM_TRY(xm_dim_eval(d, b->list, b->n, &expected, err));
    if (expected == value)
        return XM_OK;
    struct xm_strbuf text = {0};
    xm_dim_print(d, &text);
    enum xm_status s =
        xm_fail(err, XM_INVALID, "expected %lld (%s), found %lld", (long long)expected,
                xm_strbuf_text(&text), (long long)value);
    xm_strbuf_free(&text);
    return s;
}

static bool
same_element(enum xm_element port, enum xm_element given)
{
    return port == given || (port == XM_BOOL && given == XM_U8);
}

static enum xm_status
check_bound(const struct xm_port *port, uint32_t axis, int64_t n, struct xm_error *err)
{
    if (xm_bound_has(port->bound[axis], n))
        return XM_OK;
    struct xm_strbuf text = {0};
    xm_bound_print(port->bound[axis], &text);
    xm_fail(err, XM_INVALID, "input '%s': dimension %u is %lld, expected %s", port->name,
            axis, (long long)n, xm_strbuf_text(&text));
    xm_strbuf_free(&text);
    return XM_INVALID;
}

enum xm_status
xm_port_check(const struct xm_port *port, const struct xm_host_tensor *t,
              struct xm_error *err)
{
    uint64_t n = 1, bytes = 0;
    if (!same_element(port->type.element, t->element))
        return xm_fail(err, XM_INVALID, "input '%s': expected %s, found %s", port->name,
                       xm_element_text(port->type.element), xm_element_text(t->element));
    if (t->rank != port->type.shape.rank)
        return xm_fail(err, XM_INVALID, "input '%s': expected rank %u, found %u",
                       port->name, port->type.shape.rank, t->rank);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0 || !xm_mul_size(n, (uint64_t)t->dim[i], &n))
            return xm_fail(err, XM_INVALID,
                           "input '%s': dimension %u is %lld, expected 0 or more",
                           port->name, i, (long long)t->dim[i]);
        XM_TRY(check_bound(port, i, t->dim[i], err));
    }
    if (!xm_element_bytes(t->element, n, &bytes) || bytes != t->bytes)
        return xm_fail(err, XM_INVALID,
                       "input '%s': its shape needs %llu bytes, found %llu", port->name,
                       (unsigned long long)bytes, (unsigned long long)t->bytes);
    if (!t->data && bytes)
        return xm_fail(err, XM_INVALID, "input '%s' has no data", port->name);
    return XM_OK;
}

enum xm_status
xm_port_check_rows(const struct xm_port *port, const struct xm_host_tensor *t,
                   struct xm_error *err)
{
    uint64_t n = 1;
    if (port->rows == 0)
        return XM_OK;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= (uint64_t)t->dim[i]; /* cannot overflow: xm_port_check has verified it */
    for (uint64_t i = 0; i < n; i++) {
        const int64_t id = xm_load_int(t->element, t->data, i);
        if (id < 0 || (uint64_t)id >= port->rows)
            return xm_fail(
                err, XM_INVALID,
                "input '%s': the value %lld of element %llu is not an index below %llu",
                port->name, (long long)id, (unsigned long long)i,
                (unsigned long long)port->rows);
    }
    return XM_OK;
}

enum xm_status
xm_bindings_from_ports(struct xm_bindings *b, const struct xm_port *ports,
                       const struct xm_host_tensor *tensors, uint32_t n,
                       struct xm_error *err)
{
    bool again = true;
    for (int round = 0; again && round < 4; round++) {
        again = false;
        for (uint32_t i = 0; i < n; i++) {
            const struct xm_shape *shape = &ports[i].type.shape;
            if (tensors[i].rank != shape->rank)
                return xm_fail(err, XM_INVALID, "input '%s': expected rank %u, found %u",
                               ports[i].name, shape->rank, tensors[i].rank);
            for (uint32_t d = 0; d < shape->rank; d++) {
                enum xm_status s =
                    bind_dim(b, shape->dim[d], tensors[i].dim[d], &again, err);
                if (s != XM_OK) {
                    xm_error_prefix(err, "input '%s', axis %u", ports[i].name, d);
                    return s;
                }
            }
        }
    }
    return again ? xm_fail(err, XM_INVALID,
                           "the shapes of the inputs do not determine all dimensions")
                 : XM_OK;
}
