/* SPDX-License-Identifier: Apache-2.0
 *
 * row_chain: the steps become a macro of the kernels (kernels/cl/include/row_chain.h), so that
 * every chain is its own kernel; layers with equal chains share it.
 */
#include "primitives/norm/row_chain.h"

#include <inttypes.h>
#include <stdio.h>

#include "primitives/args.h"
#include "primitives/stage.h"
#include "primitives/tables.h"

enum {
    LONGEST_ROW = 1 << 24,
    LANES = 16, /* floats of a vector in row_chain_vec */
    /* elements of a row that an sg work-item should hold in registers */
    EACH = 8,
    MOST_EACH = 12,      /* most elements that it may hold */
    LARGEST_GROUP = 1024 /* work-items of an sg work-group */
};

struct problem {
    uint64_t n, items; /* items of an sg work-group */
};

struct row_chain {
    struct xm_primitive base;
    struct xm_row_chain_desc desc;
    struct problem problem;
    struct xm_pick pick;
    struct xm_kernel *kernel;
};

static const char *
vec_refuses(const void *problem)
{
    return ((const struct problem *)problem)->n % LANES
               ? "a row is not a multiple of 16 elements"
               : NULL;
}

static const char *
sg_refuses(const void *problem)
{
    const struct problem *p = problem;
    return p->n > MOST_EACH * p->items ? "a row is too long for registers" : NULL;
}

/* clang-format off */
static const struct xm_variant variants[] = {
    { "row_chain_vec", XM_FAMILY_VEC, 0, vec_refuses, {XM_SPAN}, .emits = true },
    { "row_chain_sg",  XM_FAMILY_SG,  0, sg_refuses,  {XM_GROUP} },
    { "row_chain_gen", XM_FAMILY_GEN, 0, NULL,        {XM_GROUP, XM_GROUP_ITEMS} },
    { "row_chain_ref", XM_FAMILY_ANY, 0, NULL,        {XM_ITEM} },
};
/* clang-format on */
const struct xm_variant_table xm_row_chain_table = XM_TABLE("row_chain", variants);

/* Returns the work-items of an sg work-group for a row of n elements: at most EACH elements for
 * each, if possible, so that the single row of a decoded token has many loads in flight. */
static uint64_t
group_items(const struct xm_device_info *device, uint64_t n)
{
    uint64_t items = XM_SUB_GROUP_ITEMS;
    while (items * EACH < n && 2 * items <= device->max_work_group &&
           2 * items <= LARGEST_GROUP)
        items *= 2;
    return items;
}

static const struct xm_variant *
row_of(const struct row_chain *s)
{
    return &variants[s->pick.row];
}

/* ---- build options ----------------------------------------------------------------- */

static void
add_operand(struct xm_strbuf *out, const struct xm_row_chain_desc *d,
            const struct xm_chain_operand *o)
{
    switch (o->kind) {
    case XM_CHAIN_NONE:
        xm_strbuf_add(out, "1.0f");
        break;
    case XM_CHAIN_X:
        xm_strbuf_printf(out, "X(%u)", o->i);
        break;
    case XM_CHAIN_C:
        xm_strbuf_printf(out, "%s(%u)", d->is_number[o->i] ? "ONE" : "C", o->i);
        break;
    case XM_CHAIN_S:
        xm_strbuf_printf(out, "S(%u)", o->i);
        break;
    }
}

/* Returns the first norm step with the same operand and epsilon: such norms share one scale. */
static uint32_t
first_norm_of(const struct xm_row_chain *c, uint32_t step)
{
    const struct xm_chain_step *s = &c->step[step];
    uint32_t i = 0;
    while (c->step[i].op != XM_CHAIN_RMS_NORM || c->step[i].a.kind != s->a.kind ||
           c->step[i].a.i != s->a.i || c->step[i].epsilon != s->epsilon)
        i++;
    return i;
}

static void
add_step(struct xm_strbuf *out, const struct xm_row_chain_desc *d, uint32_t i,
         uint32_t scale)
{
    static const char *const names[] = {[XM_CHAIN_RMS_NORM] = "NORM",
                                        [XM_CHAIN_ADD] = "ADD",
                                        [XM_CHAIN_MULTIPLY] = "MUL",
                                        [XM_CHAIN_ROUND_BF16] = "RND"};
    const struct xm_chain_step *s = &d->chain.step[i];
    xm_strbuf_printf(out, "%s(%u,", names[s->op], i);
    add_operand(out, d, &s->a);
    if (s->op != XM_CHAIN_ROUND_BF16) {
        xm_strbuf_add(out, ",");
        add_operand(out, d, &s->b);
    }
    if (s->op == XM_CHAIN_RMS_NORM)
        xm_strbuf_printf(out, ",%u", scale);
    xm_strbuf_add(out, ")");
}

/* Appends -DCHAIN=.. -DSCALES=.. -DN_EPSILONS=.. -DEPSILONS=.. . */
static void
add_chain(struct xm_strbuf *out, const struct xm_row_chain_desc *d)
{
    uint32_t scale[XM_CHAIN_STEPS] = {0}, n_scales = 0, n_y = 0;
    struct xm_strbuf epsilons = {0};
    xm_strbuf_add(out, " -DCHAIN=");
    for (uint32_t i = 0; i < d->chain.n_x; i++)
        xm_strbuf_printf(out, "IN(%u)", i);
    for (uint32_t i = 0; i < d->chain.n_steps; i++) {
        const struct xm_chain_step *s = &d->chain.step[i];
        bool is_norm = s->op == XM_CHAIN_RMS_NORM;
        uint32_t first = is_norm ? first_norm_of(&d->chain, i) : 0;
        if (is_norm && first == i) {
            scale[i] = n_scales++;
            xm_strbuf_printf(out, "SCALE(%u,", scale[i]);
            add_operand(out, d, &s->a);
            xm_strbuf_add(out, ")");
            xm_strbuf_printf(&epsilons, "%s%.8ef", scale[i] ? "," : "",
                             (double)s->epsilon);
        }
        add_step(out, d, i, scale[first]);
        if (s->is_result)
            xm_strbuf_printf(out, "OUT(%u,%u)", n_y++, i);
    }
    xm_strbuf_printf(out, " -DSCALES=%u -DN_EPSILONS=%u -DEPSILONS=%s", n_scales,
                     n_scales ? n_scales : 1,
                     n_scales ? xm_strbuf_text(&epsilons) : "0.0f");
    out->failed |= !xm_strbuf_ok(&epsilons);
    xm_strbuf_free(&epsilons);
}

static void
add_types(struct xm_strbuf *out, const struct xm_row_chain_desc *d)
{
    for (uint32_t i = 0; i < d->chain.n_x; i++)
        xm_strbuf_printf(out, " -DX%u=%s", i, xm_element_text(d->x[i]));
    for (uint32_t i = 0; i < d->chain.n_y; i++)
        xm_strbuf_printf(out, " -DY%u=%s", i, xm_element_text(d->y[i]));
}

static enum xm_status
build(void *ctx, size_t i, struct xm_error *err)
{
    struct row_chain *s = ctx;
    struct xm_strbuf defines = {0};
    const struct xm_variant *row = row_of(s);
    static const char *const forms[XM_CHAIN_YS] = {"FORM0", "FORM1", "FORM2", "FORM3"};
    char form[64];
    (void)i;
    xm_strbuf_printf(&defines, "-DROW=%u", s->desc.n);
    if (row->launch.unit == XM_GROUP)
        xm_strbuf_printf(&defines, " -DITEMS=%" PRIu64,
                         row->launch.size ? row->launch.size : s->problem.items);
    for (uint32_t y = 0; row->emits && y < s->desc.chain.n_y; y++) {
        xm_form_defines(&s->desc.prepared[y], forms[y], form, sizeof(form));
        xm_strbuf_add(&defines, form);
    }
    add_types(&defines, &s->desc);
    add_chain(&defines, &s->desc);
    enum xm_status status =
        xm_strbuf_ok(&defines)
            ? xm_engine_kernel(s->base.engine, row->name, xm_strbuf_text(&defines),
                               &s->kernel, err)
            : xm_no_memory(err, "a kernel's build options");
    xm_strbuf_free(&defines);
    return status;
}

/* ---- the primitive ----------------------------------------------------------------- */

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *operands,
    const struct xm_run *run, struct xm_error *err)
{
    static const char *const xs[XM_CHAIN_XS] = {"x0", "x1", "x2", "x3"},
                             *const ys[XM_CHAIN_YS] = {"y0", "y1", "y2", "y3"};
    static const char *const prepared[XM_CHAIN_YS] = {"prepared0", "prepared1",
                                                      "prepared2", "prepared3"};
    static const char *const cs[XM_CHAIN_CS] = {"c0", "c1", "c2", "c3",
                                                "c4", "c5", "c6", "c7"};
    const struct row_chain *s = (const struct row_chain *)p;
    const struct xm_row_chain *chain = &s->desc.chain;
    const struct xm_operand *x = &operands[XM_ROW_CHAIN_X];
    const struct xm_operand *y = &operands[XM_ROW_CHAIN_Y];
    uint64_t rows = xm_operand_rows(x);
    struct xm_args a = {.n = 0};
    for (uint32_t i = 0; i < chain->n_x; i++)
        XM_TRY(xm_operand_check_rows(&x[i], "x", s->desc.x[i], rows, s->desc.n, err));
    for (uint32_t i = 0; i < chain->n_y; i++)
        XM_TRY(xm_operand_check_rows(&y[i], "y", s->desc.y[i], rows, s->desc.n, err));
    if (rows == 0)
        return XM_OK;
    for (uint32_t i = 0; i < XM_CHAIN_XS; i++)
        xm_put_buffer(&a, xs[i], i < chain->n_x ? x[i].buffer : NULL);
    for (uint32_t i = 0; i < XM_CHAIN_CS; i++)
        xm_put_buffer(&a, cs[i], s->desc.constant[i]);
    for (uint32_t i = 0; i < XM_CHAIN_YS; i++)
        xm_put_buffer(&a, ys[i], i < chain->n_y ? y[i].buffer : NULL);
    xm_put_ulong(&a, "rows", rows);
    for (uint32_t i = 0; i < XM_CHAIN_YS; i++)
        xm_put_buffer(&a, prepared[i],
                      xm_prepared_target(&s->desc.prepared[i],
                                         &operands[XM_ROW_CHAIN_PREPARED + i], s->desc.n,
                                         rows));
    const struct xm_counts counts = {.n = {[XM_UNITS] = rows}, .items = s->problem.items};
    return xm_launch(&row_of(s)->launch, s->kernel, &counts, &a, run->queue, err);
}

static void
describe(const struct xm_primitive *p, const struct xm_operand *operands, char *out,
         size_t out_bytes)
{
    (void)operands;
    snprintf(out, out_bytes, "%s", row_of((const struct row_chain *)p)->name);
}

static void
destroy(struct xm_primitive *p)
{
    for (uint32_t i = 0; i < XM_CHAIN_CS; i++)
        xm_buffer_unref(((struct row_chain *)p)->desc.constant[i]);
    xm_primitive_free(p);
}

/* clang-format off */
#define EACH(role) role, role, role, role
static const uint8_t roles[] = {
    [XM_ROW_CHAIN_X]        = EACH(XM_ROLE_IN),
    [XM_ROW_CHAIN_PREPARED] = EACH(XM_ROLE_OUT | XM_ROLE_FORM),
    [XM_ROW_CHAIN_Y]        = EACH(XM_ROLE_OUT),
};
#undef EACH
/* clang-format on */
static const struct xm_primitive_ops ops = {"row_chain", NULL,    run,
                                            describe,    destroy, XM_ROLES(roles)};

const char *
xm_row_chain_supports(const struct xm_row_chain *chain, int64_t n)
{
    if (chain->n_steps == 0 || chain->n_x == 0 || chain->n_y == 0)
        return "the chain has no step, operand or result";
    return n < 1 || n > LONGEST_ROW
               ? "the length of its rows is not constant, or too large"
               : NULL;
}

static enum xm_status
check_desc(const struct xm_row_chain_desc *d, struct xm_error *err)
{
    const char *why = xm_row_chain_supports(&d->chain, d->n);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "row_chain: %s", why);
    for (uint32_t i = 0; i < d->chain.n_c; i++) {
        uint64_t n = d->is_number[i] ? 1 : d->n;
        if (!d->constant[i] || xm_buffer_bytes(d->constant[i]) < n * sizeof(float))
            return xm_fail(err, XM_INVALID,
                           "constant %u of a row chain must have %" PRIu64 " elements", i,
                           n);
    }
    return XM_OK;
}

enum xm_status
xm_row_chain_create(struct xm_engine *engine, const struct xm_row_chain_desc *desc,
                    struct xm_primitive **out, struct xm_error *err)
{
    XM_TRY(check_desc(desc, err));
    struct row_chain *s = xm_primitive_new(sizeof(*s), &ops, engine, err);
    if (!s)
        return XM_NO_MEMORY;
    s->desc = *desc;
    for (uint32_t i = 0; i < XM_CHAIN_CS; i++) {
        s->desc.constant[i] = i < desc->chain.n_c ? desc->constant[i] : NULL;
        if (s->desc.constant[i])
            xm_buffer_ref(s->desc.constant[i]);
    }
    s->problem = (struct problem){desc->n, group_items(xm_engine_info(engine), desc->n)};
    s->pick = (struct xm_pick){.table = &xm_row_chain_table, .problem = &s->problem};
    enum xm_status status = xm_variant_build(&s->pick, 1, engine, build, s, err);
    if (status != XM_OK) {
        destroy(&s->base);
        return status;
    }
    *out = &s->base;
    return XM_OK;
}

bool
xm_row_chain_emits(const struct xm_primitive *chain, uint32_t y)
{
    const struct row_chain *s = (const struct row_chain *)chain;
    return xm_rows_are_prepared(&s->desc.prepared[y]) && row_of(s)->emits;
}
