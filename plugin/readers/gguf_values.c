/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads values of keys, and checks their types and ranges.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "plugin/readers/gguf_records.h"

/* ---- types --------------------------------------------------------------------------- */

bool
xm_gguf_element(uint32_t number, enum xm_element *out)
{
    static const enum xm_element elements[] = {
        XM_U8,   XM_I8,     XM_U16,     XM_I16, XM_U32, XM_I32, XM_F32,
        XM_BOOL, XM_STRING, XM_DYNAMIC, XM_U64, XM_I64, XM_F64,
    };
    if (number >= XM_ARRAY_LEN(elements))
        return false;
    *out = elements[number];
    return true;
}

const char *
xm_gguf_element_text(enum xm_element element)
{
    return element == XM_DYNAMIC ? "list" : xm_element_text(element);
}

/* ---- one of a list ------------------------------------------------------------------- */

/* Fails with "key 'a': expected …, found u32"; for a list, the message also has the index of the
 * value. */
static enum xm_status
refuse(const struct xm_gguf_values *l, uint64_t i, const char *expected,
       const char *found, struct xm_error *err)
{
    char which[32] = "";
    if (l->n != 1)
        snprintf(which, sizeof(which), ", value %" PRIu64, i);
    return xm_fail(err, XM_INVALID, "key '%.*s'%s: expected %s, found %s",
                   XM_GGUF_SHOW(l->key), which, expected, found);
}

static enum xm_status
refuse_type(const struct xm_gguf_values *l, uint64_t i, const char *expected,
            struct xm_error *err)
{
    return refuse(l, i, expected, xm_gguf_element_text(l->element), err);
}

static enum xm_status
check_index(const struct xm_gguf_values *l, uint64_t i, struct xm_error *err)
{
    if (i < l->n)
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "key '%.*s': there is no value %" PRIu64 ": the list has %" PRIu64
                   " values, numbered from 0",
                   XM_GGUF_SHOW(l->key), i, l->n);
}

enum xm_status
xm_gguf_bool_at(const struct xm_gguf_values *l, uint64_t i, bool *out,
                struct xm_error *err)
{
    XM_TRY(check_index(l, i, err));
    if (l->element != XM_BOOL)
        return refuse_type(l, i, "true or false", err);
    if (l->bytes.p[i] > 1)
        return refuse(l, i, "true or false", "a byte above 1", err);
    *out = l->bytes.p[i] != 0;
    return XM_OK;
}

/* Loads value i, a whole number, as 64 bits in two's complement. */
static enum xm_status
load_whole(const struct xm_gguf_values *l, uint64_t i, int64_t *bits,
           struct xm_error *err)
{
    XM_TRY(check_index(l, i, err));
    if (!xm_element_is_int(l->element) || l->element == XM_BOOL)
        return refuse_type(l, i, "a whole number", err);
    *bits = xm_load_int(l->element, l->bytes.p, i);
    return XM_OK;
}

static enum xm_status
load_up_to(const struct xm_gguf_values *l, uint64_t i, uint64_t most, uint64_t *out,
           struct xm_error *err)
{
    int64_t bits = 0;
    char expected[64], found[32];
    XM_TRY(load_whole(l, i, &bits, err));
    const bool is_negative = bits < 0 && l->element != XM_U64;
    if (!is_negative && (uint64_t)bits <= most) {
        *out = (uint64_t)bits;
        return XM_OK;
    }
    snprintf(expected, sizeof(expected), "a whole number from 0 to %" PRIu64, most);
    if (is_negative)
        snprintf(found, sizeof(found), "%" PRId64, bits);
    else
        snprintf(found, sizeof(found), "%" PRIu64, (uint64_t)bits);
    return refuse(l, i, expected, found, err);
}

enum xm_status
xm_gguf_u64_at(const struct xm_gguf_values *l, uint64_t i, uint64_t *out,
               struct xm_error *err)
{
    return load_up_to(l, i, UINT64_MAX, out, err);
}

enum xm_status
xm_gguf_u32_at(const struct xm_gguf_values *l, uint64_t i, uint32_t *out,
               struct xm_error *err)
{
    uint64_t x = 0;
    XM_TRY(load_up_to(l, i, UINT32_MAX, &x, err));
    *out = (uint32_t)x;
    return XM_OK;
}

enum xm_status
xm_gguf_i64_at(const struct xm_gguf_values *l, uint64_t i, int64_t *out,
               struct xm_error *err)
{
    int64_t x = 0;
    uint64_t fits = 0;
    XM_TRY(load_whole(l, i, &x, err));
    if (l->element == XM_U64)
        XM_TRY(load_up_to(l, i, INT64_MAX, &fits, err));
    *out = x;
    return XM_OK;
}

enum xm_status
xm_gguf_f64_at(const struct xm_gguf_values *l, uint64_t i, double *out,
               struct xm_error *err)
{
    XM_TRY(check_index(l, i, err));
    if (l->element == XM_F32)
        *out = (double)xm_load_float(XM_F32, l->bytes.p, i);
    else if (l->element == XM_F64)
        memcpy(out, l->bytes.p + i * sizeof(*out), sizeof(*out));
    else
        return refuse_type(l, i, "a number f32 or f64", err);
    return XM_OK;
}

enum xm_status
xm_gguf_f32_at(const struct xm_gguf_values *l, uint64_t i, float *out,
               struct xm_error *err)
{
    double x = 0;
    XM_TRY(xm_gguf_f64_at(l, i, &x, err));
    if (!isfinite(x) || !isfinite((float)x))
        return refuse(l, i, "a finite f32",
                      isnan(x) ? "NaN" : "a number that is infinite or too large", err);
    *out = (float)x;
    return XM_OK;
}

/* Removes n bytes from the front. They exist, because opening the file has checked all lengths. */
static const uint8_t *
take(struct xm_gguf_values *l, uint64_t n)
{
    const uint8_t *p = l->bytes.p;
    assert(n <= l->bytes.n);
    l->bytes.p += n;
    l->bytes.n -= n;
    return p;
}

static uint64_t
take_u64(struct xm_gguf_values *l)
{
    return (uint64_t)xm_load_int(XM_U64, take(l, 8), 0);
}

enum xm_status
xm_gguf_next_text(struct xm_gguf_values *l, struct xm_slice *out, struct xm_error *err)
{
    if (l->element != XM_STRING)
        return refuse_type(l, 0, "a text", err);
    if (l->n == 0)
        return xm_fail(err, XM_NOT_FOUND, "key '%.*s': it has no more texts",
                       XM_GGUF_SHOW(l->key));
    const uint64_t n = take_u64(l);
    *out = xm_slice_of((const char *)take(l, n), (size_t)n);
    l->n--;
    return XM_OK;
}

/* Removes the next list from a list of lists. Its type and count precede its values. */
static struct xm_gguf_values
take_list(struct xm_gguf_values *l)
{
    struct xm_gguf_values inner = {.key = l->key};
    const bool is_known =
        xm_gguf_element((uint32_t)xm_load_int(XM_U32, take(l, 4), 0), &inner.element);
    assert(is_known);
    (void)is_known;
    inner.n = take_u64(l);
    inner.bytes.p = l->bytes.p;
    const bool is_fixed = inner.element != XM_STRING && inner.element != XM_DYNAMIC;
    if (is_fixed)
        take(l, inner.n * (xm_element_bits(inner.element) / 8));
    for (uint64_t i = 0; i < inner.n && !is_fixed; i++) {
        if (inner.element == XM_STRING)
            take(l, take_u64(l));
        else
            take_list(l);
    }
    inner.bytes.n = (uint64_t)(l->bytes.p - inner.bytes.p);
    return inner;
}

enum xm_status
xm_gguf_next_list(struct xm_gguf_values *l, struct xm_gguf_values *out,
                  struct xm_error *err)
{
    if (l->element != XM_DYNAMIC)
        return refuse_type(l, 0, "a list", err);
    if (l->n == 0)
        return xm_fail(err, XM_NOT_FOUND, "key '%.*s': it has no more lists",
                       XM_GGUF_SHOW(l->key));
    *out = take_list(l);
    l->n--;
    return XM_OK;
}

/* ---- of a key ------------------------------------------------------------------------ */

const struct xm_gguf_key *
xm_gguf_find_key(const struct xm_gguf *g, const char *name)
{
    const struct xm_gguf_part *p = &g->parts[0];
    return xm_gguf_find_name(p->keys_by_name, p->n_keys, name);
}

static enum xm_status
find_key(const struct xm_gguf *g, const char *name, const struct xm_gguf_key **out,
         struct xm_error *err)
{
    *out = xm_gguf_find_key(g, name);
    return *out ? XM_OK : xm_fail(err, XM_NOT_FOUND, "there is no key '%.100s'", name);
}

static enum xm_status
check_one(const struct xm_gguf_key *k, struct xm_error *err)
{
    if (!k->is_list)
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "key '%.*s': expected one value, found a list of %" PRIu64 " (%s)",
                   XM_GGUF_SHOW(k->name), k->value.n,
                   xm_gguf_element_text(k->value.element));
}

enum xm_status
xm_gguf_whole(const struct xm_gguf_key *k, uint64_t most, uint64_t *out,
              struct xm_error *err)
{
    XM_TRY(check_one(k, err));
    return load_up_to(&k->value, 0, most, out, err);
}

static enum xm_status
find_one(const struct xm_gguf *g, const char *name, const struct xm_gguf_values **out,
         struct xm_error *err)
{
    const struct xm_gguf_key *k = NULL;
    XM_TRY(find_key(g, name, &k, err));
    XM_TRY(check_one(k, err));
    *out = &k->value;
    return XM_OK;
}

enum xm_status
xm_gguf_bool(const struct xm_gguf *g, const char *key, bool *out, struct xm_error *err)
{
    const struct xm_gguf_values *value = NULL;
    XM_TRY(find_one(g, key, &value, err));
    return xm_gguf_bool_at(value, 0, out, err);
}

enum xm_status
xm_gguf_u32(const struct xm_gguf *g, const char *key, uint32_t *out, struct xm_error *err)
{
    const struct xm_gguf_values *value = NULL;
    XM_TRY(find_one(g, key, &value, err));
    return xm_gguf_u32_at(value, 0, out, err);
}

enum xm_status
xm_gguf_u64(const struct xm_gguf *g, const char *key, uint64_t *out, struct xm_error *err)
{
    const struct xm_gguf_values *value = NULL;
    XM_TRY(find_one(g, key, &value, err));
    return xm_gguf_u64_at(value, 0, out, err);
}

enum xm_status
xm_gguf_i64(const struct xm_gguf *g, const char *key, int64_t *out, struct xm_error *err)
{
    const struct xm_gguf_values *value = NULL;
    XM_TRY(find_one(g, key, &value, err));
    return xm_gguf_i64_at(value, 0, out, err);
}

enum xm_status
xm_gguf_f32(const struct xm_gguf *g, const char *key, float *out, struct xm_error *err)
{
    const struct xm_gguf_values *value = NULL;
    XM_TRY(find_one(g, key, &value, err));
    return xm_gguf_f32_at(value, 0, out, err);
}

enum xm_status
xm_gguf_text(const struct xm_gguf *g, const char *key, struct xm_slice *out,
             struct xm_error *err)
{
    const struct xm_gguf_values *value = NULL;
    XM_TRY(find_one(g, key, &value, err));
    struct xm_gguf_values one = *value;
    return xm_gguf_next_text(&one, out, err);
}

enum xm_status
xm_gguf_list(const struct xm_gguf *g, const char *key, struct xm_gguf_values *out,
             struct xm_error *err)
{
    const struct xm_gguf_key *k = NULL;
    XM_TRY(find_key(g, key, &k, err));
    if (!k->is_list)
        return xm_fail(err, XM_INVALID, "key '%.*s': expected a list, found one %s",
                       XM_GGUF_SHOW(k->name), xm_gguf_element_text(k->value.element));
    *out = k->value;
    return XM_OK;
}
