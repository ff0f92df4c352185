/* SPDX-License-Identifier: Apache-2.0
 *
 * Concrete tensors and the store of states for `evaluate`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "transformations/graph/evaluate_ops.h"

static const uint64_t max_elements = (uint64_t)1 << 40;

enum xm_status
xm_eval_no_memory(struct xm_error *err)
{
    return xm_fail(err, XM_NO_MEMORY, "out of host memory while evaluating");
}

/* ---- tensors ----------------------------------------------------------------------- */

static enum xm_status
count_elements(uint32_t rank, const int64_t *dim, uint64_t *n, struct xm_error *err)
{
    bool empty = false;
    if (rank > XM_MAX_RANK)
        return xm_fail(err, XM_UNSUPPORTED,
                       "a tensor of rank %u; at most %d are possible", rank, XM_MAX_RANK);
    *n = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (dim[i] < 0)
            return xm_fail(err, XM_INVALID, "dimension %u of a tensor is %" PRId64, i,
                           dim[i]);
        empty |= dim[i] == 0;
    }
    for (uint32_t i = 0; i < rank && !empty; i++) {
        if (!xm_mul_size(*n, (uint64_t)dim[i], n) || *n > max_elements)
            return xm_fail(err, XM_NO_MEMORY,
                           "a tensor of more than %" PRIu64 " elements", max_elements);
    }
    *n = empty ? 0 : *n;
    return XM_OK;
}

enum xm_status
xm_tensor_create(struct xm_tensor **out, enum xm_element element, uint32_t rank,
                 const int64_t *dim, struct xm_error *err)
{
    uint64_t n;
    bool is_float = xm_element_is_float(element);
    *out = NULL;
    if (!is_float && !xm_element_is_int(element))
        return xm_fail(err, XM_UNSUPPORTED, "a tensor of type %s cannot be evaluated",
                       xm_element_text(element));
    XM_TRY(count_elements(rank, dim, &n, err));
    struct xm_tensor *t = xm_calloc(1, sizeof(*t));
    if (!t)
        return xm_eval_no_memory(err);
    t->element = element;
    t->rank = rank;
    t->n = n;
    for (uint32_t i = 0; i < rank; i++)
        t->dim[i] = dim[i];
    if (is_float)
        t->f = xm_calloc(n, sizeof(*t->f));
    else
        t->i = xm_calloc(n, sizeof(*t->i));
    if (!t->f && !t->i) {
        xm_free(t);
        return xm_no_memory(err, "a tensor of %" PRIu64 " elements", n);
    }
    *out = t;
    return XM_OK;
}

void
xm_tensor_destroy(struct xm_tensor *t)
{
    if (!t)
        return;
    xm_free(t->f);
    xm_free(t->i);
    xm_free(t);
}

void
xm_tensor_fill(struct xm_tensor *t, const void *bytes)
{
    for (uint64_t i = 0; t->f && i < t->n; i++)
        t->f[i] = xm_load_float(t->element, bytes, i);
    for (uint64_t i = 0; t->i && i < t->n; i++)
        t->i[i] = xm_load_int(t->element, bytes, i);
}

enum xm_status
xm_tensor_from_bytes(struct xm_tensor **out, enum xm_element element, uint32_t rank,
                     const int64_t *dim, const void *bytes, struct xm_error *err)
{
    *out = NULL;
    if (!xm_element_readable(element))
        return xm_fail(err, XM_UNSUPPORTED, "elements of type %s cannot be read",
                       xm_element_text(element));
    struct xm_tensor *t;
    XM_TRY(xm_tensor_create(&t, element, rank, dim, err));
    xm_tensor_fill(t, bytes);
    *out = t;
    return XM_OK;
}

/* Packs elements of fewer than 8 bits, low bits first. */
static void
store_packed(const struct xm_tensor *t, uint8_t *bytes)
{
    uint32_t bits = xm_element_bits(t->element);
    uint64_t mask = (1u << bits) - 1;
    uint64_t n_bytes;
    if (xm_element_bytes(t->element, t->n, &n_bytes))
        memset(bytes, 0, n_bytes);
    for (uint64_t i = 0; t->i && i < t->n; i++) {
        uint64_t bit = i * bits;
        bytes[bit / 8] |= (uint8_t)(((uint64_t)t->i[i] & mask) << bit % 8);
    }
}

void
xm_tensor_to_bytes(const struct xm_tensor *t, void *bytes)
{
    if (xm_element_bits(t->element) < 8) {
        store_packed(t, bytes);
        return;
    }
    for (uint64_t i = 0; t->f && i < t->n; i++)
        xm_store_float(t->element, bytes, i, t->f[i]);
    for (uint64_t i = 0; t->i && i < t->n; i++)
        xm_store_int(t->element, bytes, i, t->i[i]);
}

uint64_t
xm_tensor_width(const struct xm_tensor *t)
{
    return t->f ? sizeof(*t->f) : sizeof(*t->i);
}

uint8_t *
xm_tensor_raw(const struct xm_tensor *t)
{
    return t->f ? (uint8_t *)t->f : (uint8_t *)t->i;
}

void
xm_tensor_move(struct xm_tensor *out, uint64_t to, const struct xm_tensor *x,
               uint64_t from, uint64_t n)
{
    if (out->f)
        memcpy(out->f + to, x->f + from, n * sizeof(*out->f));
    else
        memcpy(out->i + to, x->i + from, n * sizeof(*out->i));
}

enum xm_status
xm_tensor_copy(struct xm_tensor **out, const struct xm_tensor *t, struct xm_error *err)
{
    XM_TRY(xm_tensor_create(out, t->element, t->rank, t->dim, err));
    xm_tensor_move(*out, 0, t, 0, t->n);
    return XM_OK;
}

void
xm_tensor_strides(const struct xm_tensor *t, int64_t *stride)
{
    int64_t n = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        stride[i] = n;
        n *= t->dim[i] > 0 ? t->dim[i] : 1;
    }
}

uint64_t
xm_tensor_size(const struct xm_tensor *t, uint32_t first, uint32_t last)
{
    uint64_t n = 1;
    for (uint32_t i = first; i < last; i++)
        n *= (uint64_t)t->dim[i];
    return n;
}

void
xm_tensor_wrap(struct xm_tensor *t)
{
    uint32_t bits = xm_element_bits(t->element);
    if (!t->i || bits >= 64 || bits == 0)
        return;
    bool is_signed = t->element == XM_I4 || t->element == XM_I8 || t->element == XM_I16 ||
                     t->element == XM_I32;
    uint64_t mask = ((uint64_t)1 << bits) - 1, sign = is_signed ? (mask >> 1) + 1 : 0;
    for (uint64_t i = 0; i < t->n; i++) {
        uint64_t v = (uint64_t)t->i[i] & mask;
        t->i[i] = t->element == XM_BOOL ? t->i[i] != 0 : (int64_t)((v ^ sign) - sign);
    }
}

const char *
xm_tensor_text(const struct xm_tensor *t, char *buffer, size_t n)
{
    int used = snprintf(buffer, n, "%s[", xm_element_text(t->element));
    for (uint32_t i = 0; i < t->rank && used >= 0 && (size_t)used < n; i++)
        used += snprintf(buffer + used, n - (size_t)used, "%s%" PRId64, i ? "," : "",
                         t->dim[i]);
    if (used >= 0 && (size_t)used + 2 <= n)
        memcpy(buffer + used, "]", 2);
    return buffer;
}

/* ---- states ------------------------------------------------------------------------ */

struct state {
    char *variable;
    struct xm_tensor *tensor; /* NULL: not written */
};

struct xm_state_store {
    struct state *states;
    size_t n, capacity;
};

struct xm_state_store *
xm_state_store_create(void)
{
    return xm_calloc(1, sizeof(struct xm_state_store));
}

void
xm_state_store_reset(struct xm_state_store *s)
{
    for (size_t i = 0; i < s->n; i++) {
        xm_tensor_destroy(s->states[i].tensor);
        s->states[i].tensor = NULL;
    }
}

void
xm_state_store_destroy(struct xm_state_store *s)
{
    if (!s)
        return;
    xm_state_store_reset(s);
    for (size_t i = 0; i < s->n; i++)
        xm_free(s->states[i].variable);
    xm_free(s->states);
    xm_free(s);
}

static struct state *
find_state(const struct xm_state_store *s, const char *variable)
{
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->states[i].variable, variable) == 0)
            return &s->states[i];
    }
    return NULL;
}

/* Finds or creates the entry of a variable. NULL: out of memory. */
static struct state *
reserve_state(struct xm_state_store *s, const char *variable)
{
    struct state *found = find_state(s, variable);
    if (found)
        return found;
    struct state *grown = xm_grow(s->states, &s->capacity, s->n + 1, sizeof(*grown));
    if (!grown)
        return NULL;
    s->states = grown;
    struct state *added = &grown[s->n];
    added->variable = xm_strdup(variable);
    added->tensor = NULL;
    if (!added->variable)
        return NULL;
    s->n++;
    return added;
}

const struct xm_tensor *
xm_state_get(const struct xm_state_store *s, const char *variable)
{
    const struct state *found = find_state(s, variable);
    return found ? found->tensor : NULL;
}

enum xm_status
xm_state_put(struct xm_state_store *s, const char *variable, struct xm_tensor *t,
             struct xm_error *err)
{
    struct state *state = reserve_state(s, variable);
    if (!state) {
        xm_tensor_destroy(t);
        return xm_eval_no_memory(err);
    }
    xm_tensor_destroy(state->tensor);
    state->tensor = t;
    return XM_OK;
}

enum xm_status
xm_state_set(struct xm_state_store *s, const char *variable, const struct xm_tensor *t,
             struct xm_error *err)
{
    struct xm_tensor *copy;
    XM_TRY(xm_tensor_copy(&copy, t, err));
    return xm_state_put(s, variable, copy, err);
}

enum xm_status
xm_state_commit(struct xm_state_store *to, struct xm_state_store *from,
                struct xm_error *err)
{
    for (size_t i = 0; i < from->n; i++) {
        if (!reserve_state(to, from->states[i].variable))
            return xm_eval_no_memory(err);
    }
    for (size_t i = 0; i < from->n; i++) {
        struct state *state = find_state(to, from->states[i].variable);
        xm_tensor_destroy(state->tensor);
        state->tensor = from->states[i].tensor;
        from->states[i].tensor = NULL;
    }
    return XM_OK;
}
