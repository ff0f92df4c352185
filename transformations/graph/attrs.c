/* SPDX-License-Identifier: Apache-2.0
 *
 * The attributes of attrs.def: setting, printing and defaulting them by name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/compiler.h"
#include "runtime/util/number.h"
#include "transformations/graph/graph.h"
#include "transformations/graph/text.h"

static const char *const gelu_names[] = {"ERF", "TANH", NULL};
static const char *const round_names[] = {"half_to_even", "half_away_from_zero", NULL};
static const char *const broadcast_names[] = {"numpy", "bidirectional", "explicit", NULL};
static const char *const reduction_names[] = {"none", "sum",  "prod", "min",
                                              "max",  "mean", NULL};
static const char *const epsilon_mode_names[] = {"inside_sqrt", "outside_sqrt", NULL};
static const char *const topk_mode_names[] = {"max", "min", NULL};
static const char *const topk_sort_names[] = {"none", "index", "value", NULL};
static const char *const activation_names[] = {
#define ACTIVATION(id, text, formula) text,
#include "runtime/operations/activations.def"
    NULL};
static const char *const routing_names[] = {
#define ROUTING_FORM(number, id, text, weight, divisor, chosen_by, scores) text,
#include "kernels/cl/include/routings.def"
    NULL};
/* Must equal the texts of xm_gate_up_text. */
static const char *const gate_up_names[] = {
    "apart", "interleaved", "stacked", "up_first_interleaved", "up_first_stacked", NULL};
_Static_assert(XM_ARRAY_LEN(routing_names) == XM_ROUTING_COUNT + 1, "numbers in order");
_Static_assert(XM_ARRAY_LEN(gate_up_names) == XM_GATE_UP_COUNT + 1, "one name a value");

#define KIND_BOOL        .kind = XM_ATTR_BOOL
#define KIND_I64         .kind = XM_ATTR_I64
#define KIND_F32         .kind = XM_ATTR_F32
#define KIND_F64         .kind = XM_ATTR_F64
#define KIND_STRING      .kind = XM_ATTR_STRING
#define KIND_ELEMENT     .kind = XM_ATTR_ELEMENT
#define KIND_ENUM(table) .kind = XM_ATTR_ENUM, .names = table##_names

static const struct xm_attr_info attrs[] = {
#define ATTR(id, member, kind_, text_, ir, def)                                          \
    {.op = XM_OP_##id,                                                                   \
     KIND_##kind_,                                                                       \
     .offset = offsetof(union xm_attr, member),                                          \
     .text = text_,                                                                      \
     .ir_name = ir,                                                                      \
     .default_text = def},
#include "transformations/graph/attrs.def"
};

const struct xm_attr_info *
xm_op_attrs(enum xm_op op, size_t *n)
{
    size_t first = 0, last;
    while (first < XM_ARRAY_LEN(attrs) && attrs[first].op != op)
        first++;
    last = first;
    while (last < XM_ARRAY_LEN(attrs) && attrs[last].op == op)
        last++;
    *n = last - first;
    return attrs + first;
}

/* ---- setting ----------------------------------------------------------------------- */

static enum xm_status
fail_value(const struct xm_attr_info *info, const char *value, const char *accepted,
           struct xm_error *err)
{
    if (info->op == XM_OP_NONE)
        return xm_fail(err, XM_INVALID, "attribute %s is '%.80s': expected %s",
                       info->text, value, accepted);
    return xm_fail(err, XM_INVALID, "attribute %s of %s is '%.80s': expected %s",
                   info->text, xm_op_info(info->op)->text, value, accepted);
}

static enum xm_status
set_bool(bool *to, const struct xm_attr_info *info, const char *value,
         struct xm_error *err)
{
    bool yes = xm_same_but_case(value, "true") || strcmp(value, "1") == 0;
    bool no = xm_same_but_case(value, "false") || strcmp(value, "0") == 0;
    if (!yes && !no)
        return fail_value(info, value, "true or false", err);
    *to = yes;
    return XM_OK;
}

static enum xm_status
set_i64(int64_t *to, const struct xm_attr_info *info, const char *value,
        struct xm_error *err)
{
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || *end || errno)
        return fail_value(info, value, "an integer of 64 bits", err);
    *to = n;
    return XM_OK;
}

static enum xm_status
set_f32(float *to, const struct xm_attr_info *info, const char *value,
        struct xm_error *err)
{
    char *end;
    float f = xm_parse_float(value, &end);
    if (end == value || *end || f != f)
        return fail_value(info, value, "a number", err);
    *to = f;
    return XM_OK;
}

static enum xm_status
set_f64(double *to, const struct xm_attr_info *info, const char *value,
        struct xm_error *err)
{
    char *end;
    double d = xm_parse_double(value, &end);
    if (end == value || *end || d != d)
        return fail_value(info, value, "a number", err);
    *to = d;
    return XM_OK;
}

static enum xm_status
set_enum(int *to, const struct xm_attr_info *info, const char *value,
         struct xm_error *err)
{
    for (int i = 0; info->names[i]; i++) {
        if (xm_same_but_case(info->names[i], value)) {
            *to = i;
            return XM_OK;
        }
    }
    struct xm_strbuf accepted = {0};
    for (int i = 0; info->names[i]; i++)
        xm_strbuf_printf(&accepted, "%s%s", i ? ", " : "one of ", info->names[i]);
    fail_value(info, value, xm_strbuf_text(&accepted), err);
    xm_strbuf_free(&accepted);
    return XM_INVALID;
}

enum xm_status
xm_attr_set(struct xm_graph *g, union xm_attr *attr, const struct xm_attr_info *info,
            const char *value, struct xm_error *err)
{
    void *to = (char *)attr + info->offset;
    switch (info->kind) {
    case XM_ATTR_BOOL:
        return set_bool(to, info, value, err);
    case XM_ATTR_I64:
        return set_i64(to, info, value, err);
    case XM_ATTR_F32:
        return set_f32(to, info, value, err);
    case XM_ATTR_F64:
        return set_f64(to, info, value, err);
    case XM_ATTR_ENUM:
        return set_enum(to, info, value, err);
    case XM_ATTR_ELEMENT: {
        enum xm_element e = xm_element_parse(value);
        if (e == XM_ELEMENT_COUNT)
            return fail_value(info, value, "an element type (f32, i64, boolean, …)", err);
        *(enum xm_element *)to = e;
        return XM_OK;
    }
    case XM_ATTR_STRING:
        break;
    }
    *(const char **)to = xm_arena_strdup(&g->arena, value);
    return *(const char **)to ? XM_OK : xm_no_memory(err, "attribute %s", info->text);
}

enum xm_status
xm_attr_defaults(struct xm_graph *g, enum xm_op op, union xm_attr *attr)
{
    size_t n;
    const struct xm_attr_info *info = xm_op_attrs(op, &n);
    memset(attr, 0, sizeof(*attr));
    for (size_t i = 0; i < n; i++)
        if (info[i].default_text)
            XM_TRY(xm_attr_set(g, attr, &info[i], info[i].default_text, &g->err));
    return XM_OK;
}

/* ---- printing ---------------------------------------------------------------------- */

void
xm_attr_print(const union xm_attr *attr, const struct xm_attr_info *info,
              struct xm_strbuf *out)
{
    const void *from = (const char *)attr + info->offset;
    switch (info->kind) {
    case XM_ATTR_BOOL:
        xm_strbuf_add(out, *(const bool *)from ? "true" : "false");
        break;
    case XM_ATTR_I64:
        xm_strbuf_printf(out, "%lld", (long long)*(const int64_t *)from);
        break;
    case XM_ATTR_F32:
        xm_strbuf_printf(out, "%.9g", (double)*(const float *)from);
        break;
    case XM_ATTR_F64:
        xm_strbuf_printf(out, "%.17g", *(const double *)from);
        break;
    case XM_ATTR_ENUM: {
        int value = *(const int *)from, n = 0;
        while (info->names[n])
            n++;
        xm_strbuf_add(out, value >= 0 && value < n ? info->names[value] : "invalid");
        break;
    }
    case XM_ATTR_ELEMENT:
        xm_strbuf_add(out, xm_element_text(*(const enum xm_element *)from));
        break;
    case XM_ATTR_STRING: {
        const char *s = *(const char *const *)from;
        xm_text_add_quoted(out, s ? s : "");
        break;
    }
    }
}
