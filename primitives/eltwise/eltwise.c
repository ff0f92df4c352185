/* SPDX-License-Identifier: Apache-2.0
 *
 * eltwise: operands are broadcast over y's shape by strides and the space is collapsed. If the rows
 * (innermost dimensions) of the collapsed space are contiguous floats, a kernel runs on vectors,
 * else element by element.
 */
#include "primitives/eltwise/eltwise.h"

#include <math.h>
#include <stdio.h>

#include "primitives/stage.h"
#include "primitives/strides.h"
#include "primitives/tables.h"
#include "runtime/kernel_defines.h"

enum { VEC_PIECE = 1024 }; /* elements of a unit of eltwise_flat_vec: its PIECE */

struct problem {
    const struct xm_eltwise_desc *desc;
    /* of rank XM_SPACE_KERNEL_RANK; the last dimension is a row */
    const struct xm_space *space;
};

static const int arity[XM_FN_COUNT] = {
#define FUNCTION(id, n, expression) [XM_FN_##id] = n,
#include "primitives/eltwise/eltwise.def"
};

static uint32_t
n_inputs(const struct xm_eltwise_desc *d)
{
    return (uint32_t)arity[d->fn];
}

static enum xm_element
operand_element(const struct xm_eltwise_desc *d, uint32_t i)
{
    const enum xm_element e[] = {d->a, d->b, d->c, d->y};
    return e[i];
}

static bool
is_small_float(enum xm_element e)
{
    return e == XM_F16 || e == XM_F32;
}

static bool
is_integer(enum xm_element e)
{
    return e == XM_I32 || e == XM_I64 || e == XM_U8 || e == XM_BOOL;
}

/* Returns whether the function is computed in int64: all operands, except the condition of a
 * select, are integers. */
static bool
computes_integers(const struct xm_eltwise_desc *d)
{
    bool integer = d->fn < XM_FN_SQRT;
    for (uint32_t i = d->fn == XM_FN_SELECT; i < n_inputs(d); i++)
        integer = integer && is_integer(operand_element(d, i));
    return integer;
}

static const char *
not_plain_rows(const void *problem)
{
    const struct problem *p = problem;
    if (!is_small_float(p->desc->y))
        return "the result is not f16 or f32";
    for (uint32_t i = 0; i < n_inputs(p->desc); i++) {
        int64_t stride = p->space->stride[i][XM_SPACE_KERNEL_RANK - 1];
        if (!is_small_float(operand_element(p->desc, i)))
            return "an operand is not f16 or f32";
        if (stride != 0 && stride != 1)
            return "the innermost dimension of an operand is strided";
    }
    return p->space->extent[XM_SPACE_KERNEL_RANK - 1] >= 8
               ? NULL
               : "rows have fewer than 8 elements";
}

/* clang-format off */
static const struct xm_variant eltwise_variants[] = {
    {"eltwise_flat_vec", XM_FAMILY_VEC, 0, not_plain_rows, {XM_SPAN}},
    {"eltwise_ref",      XM_FAMILY_ANY, 0, NULL,           {XM_ITEM, 0, {XM_ELEMENTS}}},
};
/* For integers: no shape can use vectors, so that eltwise_flat_vec is not built. */
static const struct xm_variant integer_variants[] = {
    {"eltwise_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_ELEMENTS}}},
};
/* clang-format on */
const struct xm_variant_table xm_eltwise_table = XM_TABLE("eltwise", eltwise_variants);
static const struct xm_variant_table integer_table =
    XM_TABLE("eltwise", integer_variants);

const char *
xm_eltwise_supports(const struct xm_eltwise_desc *desc)
{
    if ((unsigned)desc->fn >= XM_FN_COUNT)
        return "there is no such function";
    for (uint32_t i = 0; i < n_inputs(desc); i++) {
        enum xm_element e = operand_element(desc, i);
        if (!is_small_float(e) && !is_integer(e))
            return "an operand is not f16, f32, i32, i64, u8 or boolean";
    }
    if (!is_small_float(desc->y) && !is_integer(desc->y))
        return "the result is not f16, f32, i32, i64, u8 or boolean";
    if (desc->fn == XM_FN_SELECT && !is_integer(desc->a))
        return "the condition of a select is a float";
    bool bitwise = desc->fn >= XM_FN_BITWISE_AND && desc->fn <= XM_FN_BITWISE_NOT;
    return bitwise && !computes_integers(desc) ? "bitwise functions need integers" : NULL;
}

/* Sets the strides that broadcast `o` over y's shape; false if the shapes do not broadcast. */
static bool
broadcast(const struct xm_operand *o, const struct xm_operand *y, int64_t *stride)
{
    int64_t step = 1;
    for (uint32_t d = 0; d < XM_OPERAND_RANK; d++)
        stride[d] = 0;
    if (o->rank > y->rank)
        return false;
    for (uint32_t d = o->rank; d-- > 0;) {
        uint32_t to = y->rank - o->rank + d;
        if (o->dim[d] != 1 && o->dim[d] != y->dim[to])
            return false;
        stride[to] = o->dim[d] == 1 ? 0 : step;
        step *= o->dim[d];
    }
    return true;
}

static const char *const operand_names[] = {"a", "b", "c", "y"};

static enum xm_status
make_space(const struct xm_eltwise_desc *desc, const struct xm_operand *operands,
           struct xm_space *space, struct xm_error *err)
{
    const struct xm_operand *y = &operands[XM_ELTWISE_Y];
    XM_TRY(xm_operand_check(y, "y", desc->y, err));
    *space = (struct xm_space){.rank = y->rank, .n_operands = XM_SPACE_OPERANDS};
    for (uint32_t d = 0; d < y->rank; d++)
        space->extent[d] = y->dim[d];
    for (uint32_t i = 0; i < n_inputs(desc); i++) {
        XM_TRY(xm_operand_check(&operands[i], operand_names[i], operand_element(desc, i),
                                err));
        if (!broadcast(&operands[i], y, space->stride[i]))
            return xm_fail(err, XM_INVALID,
                           "the shape of operand '%s' does not broadcast to y's",
                           operand_names[i]);
    }
    broadcast(y, y, space->stride[XM_ELTWISE_Y]);
    xm_space_collapse(space);
    return XM_OK;
}

static enum xm_status
enqueue_piece(const struct xm_staged *s, const struct xm_operand *operands,
              const struct xm_space *piece, const struct xm_run *run,
              struct xm_error *err)
{
    const struct xm_eltwise_desc *d = s->desc;
    const struct problem problem = {d, piece};
    const uint64_t points = xm_space_points(piece);
    const uint64_t row = (uint64_t)piece->extent[XM_SPACE_KERNEL_RANK - 1];
    const uint64_t pieces = points / row * ((row + VEC_PIECE - 1) / VEC_PIECE);
    const struct xm_counts counts = {.n = {[XM_UNITS] = pieces, [XM_ELEMENTS] = points}};
    struct xm_args args = {.n = 0};
    for (uint32_t i = 0; i <= XM_ELTWISE_Y; i++)
        xm_put_buffer(&args, operand_names[i],
                      i < n_inputs(d) || i == XM_ELTWISE_Y ? operands[i].buffer : NULL);
    xm_put_extents(&args, piece);
    for (uint32_t i = 0; i < XM_ELTWISE_Y; i++) {
        xm_put_offset(&args, operand_names[i], piece, i);
        xm_put_strides(&args, operand_names[i], piece, i);
    }
    xm_put_offset(&args, operand_names[XM_ELTWISE_Y], piece, XM_ELTWISE_Y);
    /* bounds of integers are rounded inward: kernels convert them to integers */
    const bool is_rounded = d->fn == XM_FN_CLAMP && computes_integers(d);
    xm_put_float(&args, "p0", is_rounded ? ceilf(d->p0) : d->p0);
    xm_put_float(&args, "p1", is_rounded ? floorf(d->p1) : d->p1);
    return xm_stage_run(&s->stage, &problem, &counts, &args, run, err);
}

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *operands,
    const struct xm_run *run, struct xm_error *err)
{
    const struct xm_staged *s = (const struct xm_staged *)p;
    struct xm_space space, piece;
    struct xm_space_walk walk;
    XM_TRY(make_space(s->desc, operands, &space, err));
    xm_space_walk_begin(&walk, &space);
    while (xm_space_walk_next(&walk, &piece))
        XM_TRY(enqueue_piece(s, operands, &piece, run, err));
    return XM_OK;
}

static void
describe(const struct xm_primitive *p, const struct xm_operand *operands, char *out,
         size_t out_bytes)
{
    const struct xm_staged *s = (const struct xm_staged *)p;
    struct xm_space space, piece;
    struct xm_space_walk walk;
    const char *name = "none";
    if (make_space(s->desc, operands, &space, NULL) == XM_OK) {
        struct problem problem = {s->desc, &piece};
        xm_space_walk_begin(&walk, &space);
        if (xm_space_walk_next(&walk, &piece))
            name = xm_stage_describe(&s->stage, &problem);
    }
    snprintf(out, out_bytes, "%s", name);
}

static const struct xm_staged_kind of_floats = {
    {"eltwise", NULL, run, describe, xm_primitive_free, XM_ROLES(xm_roles_3_1)},
    &xm_eltwise_table,
    sizeof(struct xm_eltwise_desc)};
static const struct xm_staged_kind of_integers = {
    {"eltwise", NULL, run, describe, xm_primitive_free, XM_ROLES(xm_roles_3_1)},
    &integer_table,
    sizeof(struct xm_eltwise_desc)};

static void
make_defines(const struct xm_eltwise_desc *d, char *out, size_t out_bytes)
{
    static const char names[] = "ABC";
    size_t n = xm_defines_print(
        out, out_bytes, "-DFN=%d -DINTEGER=%d -DY=%s -DY_IS_FLOAT=%d -DY_IS_BOOLEAN=%d",
        (int)d->fn, computes_integers(d), xm_element_text(d->y), is_small_float(d->y),
        d->y == XM_BOOL);
    for (uint32_t i = 0; i < n_inputs(d); i++)
        n += xm_defines_print(out + n, out_bytes - n, " -D%c=%s", names[i],
                              xm_element_text(operand_element(d, i)));
}

static bool
all_floats(const struct xm_eltwise_desc *d)
{
    bool floats = is_small_float(d->y);
    for (uint32_t i = 0; i < n_inputs(d); i++)
        floats = floats && is_small_float(operand_element(d, i));
    return floats;
}

enum xm_status
xm_eltwise_create(struct xm_engine *engine, const struct xm_eltwise_desc *desc,
                  struct xm_primitive **out, struct xm_error *err)
{
    char defines[XM_STAGE_DEFINES];
    const char *why = xm_eltwise_supports(desc);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "eltwise: %s", why);
    make_defines(desc, defines, sizeof(defines));
    return xm_staged_create(all_floats(desc) ? &of_floats : &of_integers, engine, desc,
                            out, err, "%s", defines);
}
