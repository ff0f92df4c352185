/* SPDX-License-Identifier: Apache-2.0 */
#include "transformations/graph/reshape.h"

#include <string.h>

#include "runtime/util/compiler.h"
#include "transformations/graph/symbols.h"

enum { MOST_FIXED = 64 }; /* most symbols that bounds fix */

/* What a reshape changes of a parameter or state, kept to restore it. */
struct kept {
    struct xm_node *node;
    struct xm_shape shape;
    const char *bounds; /* parameters only */
};

struct reshape {
    struct xm_graph *g;
    struct kept *kept;
    uint32_t n;
    struct xm_error *err;
};

static bool
is_declared(const struct xm_node *n)
{
    return n->op == XM_OP_PARAMETER || n->op == XM_OP_READ_VALUE;
}

static bool
is_of_runs(const char *symbol)
{
    static const char *const of_runs[] = {XM_SYMBOL_BATCH, XM_SYMBOL_TOKENS,
                                          XM_SYMBOL_PAST, XM_SYMBOL_SAMPLES};
    for (size_t i = 0; i < XM_ARRAY_LEN(of_runs); i++) {
        if (strcmp(symbol, of_runs[i]) == 0)
            return true;
    }
    return false;
}

/* The name of the symbol if d is exactly one; NULL: it is a number or an expression. */
static const char *
lone_symbol(struct xm_dim d)
{
    const char *name = xm_dim_symbol_name(d, 0);
    return xm_dim_is_symbol(d, name) ? name : NULL;
}

static enum xm_status
keep_all(struct reshape *r, struct xm_arena *scratch)
{
    r->kept = xm_arena_alloc(scratch, ((size_t)r->g->n_nodes + 1) * sizeof(*r->kept));
    if (!r->kept)
        return xm_fail(r->err, XM_NO_MEMORY, "out of memory to reshape a graph");
    xm_for_each_node(n, r->g)
    {
        if (is_declared(n))
            r->kept[r->n++] =
                (struct kept){n, n->out[0].type.shape,
                              n->op == XM_OP_PARAMETER ? n->attr.parameter.bounds : NULL};
    }
    return XM_OK;
}

static void
put_back(struct reshape *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct xm_node *n = r->kept[i].node;
        n->out[0].type.shape = r->kept[i].shape;
        if (n->op == XM_OP_PARAMETER)
            n->attr.parameter.bounds = r->kept[i].bounds;
    }
    r->g->err = (struct xm_error){0};
    xm_graph_infer(r->g); /* restores the types of before */
    r->g->err = (struct xm_error){0};
}

static void
replace_everywhere(struct reshape *r, const char *symbol, int64_t value)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct xm_shape *s = &r->kept[i].node->out[0].type.shape;
        for (uint32_t k = 0; k < s->rank; k++)
            s->dim[k] =
                xm_dim_replace(&r->g->dims, s->dim[k], symbol, xm_dim_const(value));
    }
}

static void
set_dim(struct reshape *r, struct xm_node *n, uint32_t axis, struct xm_bound want)
{
    struct xm_dim *d = &n->out[0].type.shape.dim[axis];
    const char *symbol = lone_symbol(*d);
    if (xm_dim_is_const(*d))
        *d = xm_bound_is_fixed(want)
                 ? xm_dim_const(want.min)
                 : xm_dim_own(&r->g->dims, n->attr.parameter.name, axis);
    else if (xm_bound_is_fixed(want) && symbol && !is_of_runs(symbol))
        replace_everywhere(r, symbol, want.min);
}

static enum xm_status
set_bounds(struct reshape *r, struct xm_node *n, const struct xm_input_shape *want)
{
    struct xm_strbuf text = {0};
    for (uint32_t i = 0; i < want->rank; i++) {
        xm_strbuf_add(&text, i ? "," : "");
        xm_bound_print(want->dim[i], &text);
    }
    n->attr.parameter.bounds =
        xm_strbuf_ok(&text) ? xm_arena_strdup(&r->g->arena, xm_strbuf_text(&text)) : NULL;
    xm_strbuf_free(&text);
    return n->attr.parameter.bounds ? XM_OK
                                    : xm_no_memory(r->err, "the bounds of an input");
}

static enum xm_status
set_input(struct reshape *r, const struct xm_input_shape *want)
{
    uint32_t i = 0;
    struct xm_node *n = NULL;
    xm_for_each_node(p, r->g)
    {
        if (p->op == XM_OP_PARAMETER && i++ == want->input)
            n = p;
    }
    if (!n)
        return xm_fail(r->err, XM_INVALID, "there is no input %u: the model has %u",
                       want->input, i);
    struct xm_shape *s = &n->out[0].type.shape;
    for (i = s->rank; i < want->rank; i++)
        s->dim[i] = xm_dim_const(0);
    s->rank = want->rank;
    for (i = 0; i < want->rank; i++)
        set_dim(r, n, i, want->dim[i]);
    return set_bounds(r, n, want);
}

/* ---- contradictions --------------------------------------------------------------- */

uint32_t
xm_graph_fixed_symbols(const struct xm_graph *g, struct xm_binding *out, uint32_t most)
{
    struct xm_bound bound[XM_MAX_RANK];
    uint32_t count = 0;
    xm_for_each_node(n, g)
    {
        const struct xm_shape *s = &n->out[0].type.shape;
        if (n->op != XM_OP_PARAMETER)
            continue;
        xm_parameter_bounds(n, bound);
        for (uint32_t i = 0; i < s->rank && count < most; i++) {
            const char *symbol = lone_symbol(s->dim[i]);
            if (symbol && xm_bound_is_fixed(bound[i]))
                out[count++] = (struct xm_binding){symbol, bound[i].min};
        }
    }
    return count;
}

/* Checks that the values of symbols, as other inputs fix them, lie within the bounds of this
 * input. */
static enum xm_status
check_input(const struct reshape *r, const struct xm_node *n,
            const struct xm_binding *fixed, uint32_t n_fixed)
{
    struct xm_bound bound[XM_MAX_RANK];
    const struct xm_shape *s = &n->out[0].type.shape;
    xm_parameter_bounds(n, bound);
    for (uint32_t i = 0; i < s->rank; i++) {
        int64_t value;
        struct xm_error none = {0};
        if (xm_dim_eval(s->dim[i], fixed, n_fixed, &value, &none) != XM_OK ||
            xm_bound_has(bound[i], value))
            continue;
        struct xm_strbuf text = {0};
        xm_bound_print(bound[i], &text);
        xm_fail(
            r->err, XM_INVALID,
            "input '%s': dimension %u is %s, but the shapes of other inputs require %lld",
            n->attr.parameter.name, i, xm_strbuf_text(&text), (long long)value);
        xm_strbuf_free(&text);
        return XM_INVALID;
    }
    return XM_OK;
}

static enum xm_status
check_inputs(const struct reshape *r)
{
    struct xm_binding fixed[MOST_FIXED];
    const uint32_t n_fixed = xm_graph_fixed_symbols(r->g, fixed, MOST_FIXED);
    xm_for_each_node(n, r->g)
    {
        if (n->op == XM_OP_PARAMETER)
            XM_TRY(check_input(r, n, fixed, n_fixed));
    }
    return XM_OK;
}

/* Symbols of runs are not replaced by their numbers, so inference does not notice numbers that
 * contradict each other. Therefore tries the inference with the numbers in place of those
 * symbols. */
static enum xm_status
check_numbers(const struct reshape *r, struct xm_arena *scratch)
{
    struct reshape trial = {.g = r->g, .err = r->err};
    struct xm_binding fixed[MOST_FIXED];
    const uint32_t n_fixed = xm_graph_fixed_symbols(r->g, fixed, MOST_FIXED);
    enum xm_status s = XM_OK;
    if (n_fixed == 0)
        return XM_OK;
    XM_TRY(keep_all(&trial, scratch));
    for (uint32_t i = 0; i < n_fixed; i++)
        replace_everywhere(&trial, fixed[i].symbol, fixed[i].value);
    if (xm_graph_infer(r->g) != XM_OK)
        s = xm_fail(r->err, r->g->err.status, "%s", r->g->err.text);
    put_back(&trial);
    return s;
}

static enum xm_status
apply(struct reshape *r, const struct xm_input_shape *list, uint32_t n,
      struct xm_arena *scratch)
{
    for (uint32_t i = 0; i < n; i++)
        XM_TRY(set_input(r, &list[i]));
    if (r->g->dims.failed)
        return xm_fail(r->err, XM_NO_MEMORY, "out of memory to reshape a graph");
    XM_TRY(check_inputs(r));
    if (xm_graph_infer(r->g) == XM_OK)
        return check_numbers(r, scratch);
    return xm_fail(r->err, r->g->err.status, "%s", r->g->err.text);
}

enum xm_status
xm_graph_reshape(struct xm_graph *g, const struct xm_input_shape *list, uint32_t n,
                 struct xm_error *err)
{
    struct xm_arena scratch = {0};
    struct reshape r = {.g = g, .err = err};
    enum xm_status status = keep_all(&r, &scratch);
    if (status == XM_OK) {
        status = apply(&r, list, n, &scratch);
        if (status != XM_OK)
            put_back(&r);
    }
    xm_arena_free(&scratch);
    return status;
}
