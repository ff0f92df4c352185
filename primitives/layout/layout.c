/* SPDX-License-Identifier: Apache-2.0
 *
 * copy: the space is collapsed first. If it is one block that is contiguous in both operands, it is
 * one buffer copy; contiguous innermost runs are copied by copy_vec, anything else element by
 * element by copy_ref.
 */
#include "primitives/layout/layout.h"

#include "primitives/stage.h"
#include "primitives/strides.h"
#include "primitives/tables.h"

enum { SRC, DST };

static const char *
no_runs(const void *problem)
{
    const struct xm_space *s = problem;
    const uint32_t last = XM_SPACE_KERNEL_RANK - 1;
    bool runs = s->stride[SRC][last] == 1 && s->stride[DST][last] == 1;
    return runs && s->extent[last] >= 4 ? NULL
                                        : "the innermost dimension is not contiguous";
}

/* clang-format off */
static const struct xm_variant rows[] = {
    {"copy_vec", XM_FAMILY_VEC, 0, no_runs, {XM_SPAN}},
    {"copy_ref", XM_FAMILY_ANY, 0, NULL,    {XM_ITEM, 0, {XM_ELEMENTS}}},
};
/* clang-format on */
const struct xm_variant_table xm_copy_table = XM_TABLE("copy", rows);

static enum xm_status
refuse_run(const struct xm_primitive *p, const struct xm_operand *operands,
           const struct xm_run *run, struct xm_error *err)
{
    (void)p, (void)operands, (void)run;
    return xm_fail(err, XM_INVALID, "a copy must be enqueued with its index space");
}

static const struct xm_staged_kind kind = {
    {"copy", NULL, refuse_run, NULL, xm_primitive_free, XM_ROLES(xm_roles_1_1)},
    &xm_copy_table,
    sizeof(struct xm_copy_desc)};

enum xm_status
xm_copy_create(struct xm_engine *engine, const struct xm_copy_desc *desc,
               struct xm_primitive **out, struct xm_error *err)
{
    uint32_t bits = xm_element_bits(desc->element);
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
        return xm_fail(err, XM_UNSUPPORTED,
                       "a copy needs elements of 8 to 64 bits, found %s",
                       xm_element_text(desc->element));
    return xm_staged_create(&kind, engine, desc, out, err, "-DBITS=%u", bits);
}

static enum xm_status
enqueue_piece(const struct xm_staged *s, const struct xm_operand *operands,
              const struct xm_space *piece, const struct xm_run *run,
              struct xm_error *err)
{
    static const char *const names[] = {"src", "dst"};
    const uint64_t points = xm_space_points(piece);
    const uint64_t run_points = (uint64_t)piece->extent[XM_SPACE_KERNEL_RANK - 1];
    const struct xm_counts counts = {
        .n = {[XM_UNITS] = points / run_points, [XM_ELEMENTS] = points}};
    struct xm_args args = {.n = 0};
    xm_put_buffer(&args, names[SRC], operands[XM_COPY_SRC].buffer);
    xm_put_buffer(&args, names[DST], operands[XM_COPY_DST].buffer);
    xm_put_extents(&args, piece);
    for (uint32_t o = SRC; o <= DST; o++) {
        xm_put_offset(&args, names[o], piece, o);
        xm_put_strides(&args, names[o], piece, o);
    }
    return xm_stage_run(&s->stage, piece, &counts, &args, run, err);
}

enum xm_status
xm_copy_enqueue(const struct xm_primitive *p, const struct xm_operand *operands,
                const struct xm_copy_space *space, const struct xm_run *run,
                struct xm_error *err)
{
    const struct xm_staged *s = (const struct xm_staged *)p;
    const enum xm_element element = ((const struct xm_copy_desc *)s->desc)->element;
    const struct xm_operand *src = &operands[XM_COPY_SRC], *dst = &operands[XM_COPY_DST];
    struct xm_space whole = {.rank = space->rank,
                             .n_operands = 2,
                             .offset = {space->src_offset, space->dst_offset}};
    XM_TRY(xm_operand_check(src, "src", element, err));
    XM_TRY(xm_operand_check(dst, "dst", element, err));
    for (uint32_t d = 0; d < space->rank; d++) {
        whole.extent[d] = space->extent[d];
        whole.stride[SRC][d] = space->src_stride[d];
        whole.stride[DST][d] = space->dst_stride[d];
    }
    if (!xm_space_inside(&whole, SRC, xm_operand_elements(src)) ||
        !xm_space_inside(&whole, DST, xm_operand_elements(dst)))
        return xm_fail(err, XM_INVALID,
                       "copy: the index space goes past the end of an operand");
    xm_space_collapse(&whole);
    uint64_t bytes = xm_element_bits(element) / 8, points = xm_space_points(&whole);
    bool block = whole.rank == 0 || (whole.rank == 1 && whole.stride[SRC][0] == 1 &&
                                     whole.stride[DST][0] == 1);
    if (block && points > 0)
        return xm_queue_copy(run->queue, src->buffer, (uint64_t)whole.offset[SRC] * bytes,
                             dst->buffer, (uint64_t)whole.offset[DST] * bytes,
                             points * bytes, err);
    struct xm_space_walk walk;
    struct xm_space piece;
    xm_space_walk_begin(&walk, &whole);
    while (xm_space_walk_next(&walk, &piece))
        XM_TRY(enqueue_piece(s, operands, &piece, run, err));
    return XM_OK;
}
