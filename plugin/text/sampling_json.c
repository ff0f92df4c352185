/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/sampling_json.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/util/json.h"
#include "runtime/util/number.h"

/* Reads the next of a row's names, which are separated by spaces. Returns the text behind it. */
static const char *
next_name(const char *at, struct xm_slice *name)
{
    at += strspn(at, " ");
    *name = xm_slice_of(at, strcspn(at, " "));
    return at + name->n;
}

/* Returns the member with any of the names; *name is the one found. NULL: there is none, or it is
 * null. */
static yyjson_val *
find_member(yyjson_val *object, const char *names, struct xm_slice *name)
{
    for (const char *at = next_name(names, name); name->n > 0; at = next_name(at, name)) {
        yyjson_val *value = yyjson_obj_getn(object, name->text, name->n);
        if (value && !yyjson_is_null(value))
            return value;
    }
    return NULL;
}

bool
xm_sampling_is_json_name(const char *name, size_t n)
{
    struct xm_slice known;
    for (size_t i = 0; i < XM_N_SAMPLING; i++) {
        const char *at = xm_sampling_rows[i].json;
        for (at = at ? next_name(at, &known) : NULL; at && known.n > 0;
             at = next_name(at, &known))
            if (xm_slice_equal(known, xm_slice_of(name, n)))
                return true;
    }
    return false;
}

static enum xm_status
wrong_type(struct xm_slice name, yyjson_val *value, const char *expected,
           struct xm_error *err)
{
    return xm_fail(err, XM_INVALID, "'%.*s' is %s, expected %s", (int)name.n, name.text,
                   xm_json_shown(value).text, expected);
}

/* Fails with a message such as "expected a number from 0 to 1", or "a whole number from 0" if the
 * bound is that of the member's type. */
static enum xm_status
wrong_number(const struct xm_sampling_row *row, struct xm_slice name, yyjson_val *value,
             struct xm_error *err)
{
    struct xm_strbuf expected = {0};
    const bool is_bounded = row->most < (double)INT32_MAX;
    xm_strbuf_printf(&expected, "a %snumber from %g",
                     row->kind == XM_SAMPLING_REAL ? "" : "whole ", row->least);
    if (is_bounded)
        xm_strbuf_printf(&expected, " to %.10g", row->most);
    const enum xm_status s = wrong_type(name, value, xm_strbuf_text(&expected), err);
    xm_strbuf_free(&expected);
    return s;
}

static enum xm_status
read_number(const struct xm_sampling_row *row, struct xm_slice name, yyjson_val *value,
            struct xm_sampling *s, struct xm_error *err)
{
    double x = yyjson_get_num(value);
    if (row->kind != XM_SAMPLING_REAL && x == -1.0)
        x = 0.0;
    if (!yyjson_is_num(value) || !xm_sampling_takes(row, x))
        return wrong_number(row, name, value, err);
    xm_sampling_set(s, row, x);
    return XM_OK;
}

static enum xm_status
read_seed(struct xm_slice name, yyjson_val *value, struct xm_sampling *s,
          struct xm_error *err)
{
    if (!yyjson_is_int(value))
        return wrong_type(name, value, "a whole number of 64 bits", err);
    if (yyjson_is_sint(value) && yyjson_get_sint(value) == -1)
        return XM_OK;
    s->seed = yyjson_get_uint(value); /* a negative number keeps its bits */
    return XM_OK;
}

/* Reads one bias of {"15043": -100} or of llama.cpp's [[15043, -100], …], where false forbids the
 * token. */
static enum xm_status
read_bias(yyjson_val *key, yyjson_val *value, struct xm_sampling_lists *lists,
          struct xm_error *err)
{
    uint64_t id = UINT64_MAX;
    if (yyjson_is_uint(key))
        id = yyjson_get_uint(key);
    else if (!yyjson_is_str(key) || !xm_parse_whole(yyjson_get_str(key), &id))
        id = UINT64_MAX;
    if (id > INT32_MAX)
        return xm_fail(err, XM_INVALID,
                       "'logit_bias' has the key %s, expected a token id",
                       xm_json_shown(key).text);
    if (yyjson_is_false(value))
        return xm_sampling_add_bias(lists, (int32_t)id, (double)XM_BIAS_BARS, err);
    if (!yyjson_is_num(value))
        return xm_fail(err, XM_INVALID,
                       "'logit_bias' of token %" PRIu64 " is %s, expected a number", id,
                       xm_json_shown(value).text);
    return xm_sampling_add_bias(lists, (int32_t)id, yyjson_get_num(value), err);
}

static enum xm_status
read_biases(struct xm_slice name, yyjson_val *value, struct xm_sampling_lists *lists,
            struct xm_error *err)
{
    size_t i, n;
    yyjson_val *key, *item;
    if (yyjson_is_obj(value)) {
        yyjson_obj_foreach(value, i, n, key, item)
            XM_TRY(read_bias(key, item, lists, err));
        return XM_OK;
    }
    if (!yyjson_is_arr(value))
        return wrong_type(name, value, "an object that maps token ids to numbers", err);
    yyjson_arr_foreach(value, i, n, item)
    {
        if (!yyjson_is_arr(item) || yyjson_arr_size(item) != 2)
            return xm_fail(err, XM_INVALID,
                           "'logit_bias' has the item %s, expected a list of a token id "
                           "and a number",
                           xm_json_shown(item).text);
        XM_TRY(
            read_bias(yyjson_arr_get_first(item), yyjson_arr_get_last(item), lists, err));
    }
    return XM_OK;
}

static enum xm_status
read_texts(size_t at, struct xm_slice name, yyjson_val *value,
           const struct xm_tokenizer *tokenizer, struct xm_sampling_lists *lists,
           struct xm_error *err)
{
    size_t i, n;
    yyjson_val *item;
    struct xm_error why = {0};
    if (!yyjson_is_arr(value))
        return wrong_type(name, value, "a list of texts", err);
    lists->said[at] = true; /* an empty list counts as given, too */
    yyjson_arr_foreach(value, i, n, item)
    {
        if (!yyjson_is_str(item))
            return wrong_type(name, item, "a list of texts", err);
        if (xm_sampling_add_text(lists, at, tokenizer,
                                 xm_slice_of(yyjson_get_str(item), yyjson_get_len(item)),
                                 &why) != XM_OK)
            return xm_fail(err, why.status, "'%.*s': %s", (int)name.n, name.text,
                           why.text);
    }
    return XM_OK;
}

static enum xm_status
read_row(size_t at, struct xm_slice name, yyjson_val *value,
         const struct xm_tokenizer *tokenizer, struct xm_sampling *s,
         struct xm_sampling_lists *lists, struct xm_error *err)
{
    switch (xm_sampling_rows[at].kind) {
    case XM_SAMPLING_REAL:
    case XM_SAMPLING_WHOLE:
    case XM_SAMPLING_COUNT:
        return read_number(&xm_sampling_rows[at], name, value, s, err);
    case XM_SAMPLING_SEED:
        return read_seed(name, value, s, err);
    case XM_SAMPLING_BIAS:
        return read_biases(name, value, lists, err);
    case XM_SAMPLING_SET:
    case XM_SAMPLING_SEQUENCES:
        break;
    }
    return read_texts(at, name, value, tokenizer, lists, err);
}

enum xm_status
xm_sampling_from_json(yyjson_val *object, const struct xm_tokenizer *tokenizer,
                      struct xm_sampling *s, struct xm_sampling_lists *lists,
                      struct xm_error *err)
{
    if (!yyjson_is_obj(object))
        return xm_fail(err, XM_INVALID,
                       "the sampling parameters are %s, expected an object",
                       xm_json_what(object));
    for (size_t i = 0; i < XM_N_SAMPLING; i++) {
        struct xm_slice name = {0};
        const char *names = xm_sampling_rows[i].json;
        yyjson_val *value = names ? find_member(object, names, &name) : NULL;
        if (value)
            XM_TRY(read_row(i, name, value, tokenizer, s, lists, err));
    }
    XM_TRY(xm_sampling_check(s, err));
    return xm_sampling_take_lists(lists, tokenizer, s, err);
}
