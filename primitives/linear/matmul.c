/* SPDX-License-Identifier: Apache-2.0
 *
 * matmul of two activations: transposition and broadcast batches become strides.
 *
 * If only some of the batch dimensions are broadcast (a [2,1,M,K] with b [2,3,K,N]), one stride
 * cannot express it: then there is one launch for each run of batches with equal strides.
 */
#include "primitives/linear/linear.h"
#include "primitives/stage.h"
#include "primitives/tables.h"

/* clang-format off */
static const struct xm_variant rows[] = {
    {"matmul_ref", XM_FAMILY_ANY, 0, NULL,
     {XM_ITEM, 0, {XM_COLS}, {XM_ROWS, 1}, {XM_UNITS, 1}}},
};
/* clang-format on */
const struct xm_variant_table xm_matmul_table = XM_TABLE("matmul", rows);

/* Returns dimension d, counted from the last; 1 beyond the rank. */
static uint64_t
dim_from_last(const struct xm_operand *o, uint32_t d)
{
    return d < o->rank ? (uint64_t)o->dim[o->rank - 1 - d] : 1;
}

/* Returns the index of the matrix of `o` that belongs to batch `batch` of `c`. */
static uint64_t
matrix_of(const struct xm_operand *o, const struct xm_operand *c, uint64_t batch)
{
    uint64_t index = 0, step = 1;
    for (uint32_t d = 2; d < c->rank; d++) {
        uint64_t size = dim_from_last(c, d), have = dim_from_last(o, d);
        index += (have == 1 ? 0 : batch % size) * step;
        batch /= size;
        step *= have;
    }
    return index;
}

/* Returns how many batches of c, from `first` on, one launch can run: those at constant steps
 * *a_step and *b_step, in matrices, of a and b. */
static uint64_t
run_length(const struct xm_operand *o, uint64_t first, uint64_t batches, uint64_t *a_step,
           uint64_t *b_step)
{
    const struct xm_operand *a = &o[XM_MATMUL_A], *b = &o[XM_MATMUL_B];
    const struct xm_operand *c = &o[XM_MATMUL_C];
    uint64_t n = 1;
    *a_step = *b_step = 0;
    if (first + 1 >= batches)
        return n;
    *a_step = matrix_of(a, c, first + 1) - matrix_of(a, c, first);
    *b_step = matrix_of(b, c, first + 1) - matrix_of(b, c, first);
    while (first + n < batches &&
           matrix_of(a, c, first + n) == matrix_of(a, c, first) + n * *a_step &&
           matrix_of(b, c, first + n) == matrix_of(b, c, first) + n * *b_step)
        n++;
    return n;
}

struct sizes {
    uint64_t m, n, k;
};

static struct sizes
sizes_of(const struct xm_matmul_desc *d, const struct xm_operand *o)
{
    const struct xm_operand *a = &o[XM_MATMUL_A], *b = &o[XM_MATMUL_B];
    struct sizes s = {dim_from_last(a, d->transpose_a ? 0 : 1),
                      dim_from_last(b, d->transpose_b ? 1 : 0),
                      dim_from_last(a, d->transpose_a ? 1 : 0)};
    return s;
}

/* Enqueues `batches` batches. at[3]: first matrix of a, b and c; step[2]: matrices of a and b from
 * batch to batch. */
static enum xm_status
run_batches(const struct xm_staged *p, const struct xm_operand *o, const struct sizes *s,
            const uint64_t *at, const uint64_t *step, uint64_t batches,
            const struct xm_run *run, struct xm_error *err)
{
    const struct xm_matmul_desc *d = p->desc;
    bool ta = d->transpose_a, tb = d->transpose_b;
    const struct xm_counts counts = {
        .n = {[XM_COLS] = s->n, [XM_ROWS] = s->m, [XM_UNITS] = batches}};
    struct xm_args args = {.n = 0};
    xm_put_buffer(&args, "a", o[XM_MATMUL_A].buffer);
    xm_put_buffer(&args, "b", o[XM_MATMUL_B].buffer);
    xm_put_buffer(&args, "c", o[XM_MATMUL_C].buffer);
    xm_put_ulong(&args, "a_at", at[0] * s->m * s->k);
    xm_put_ulong(&args, "b_at", at[1] * s->k * s->n);
    xm_put_ulong(&args, "c_at", at[2] * s->m * s->n);
    xm_put_ulong(&args, "a_batch", step[0] * s->m * s->k);
    xm_put_ulong(&args, "a_m", ta ? 1 : s->k);
    xm_put_ulong(&args, "a_k", ta ? s->m : 1);
    xm_put_ulong(&args, "b_batch", step[1] * s->k * s->n);
    xm_put_ulong(&args, "b_k", tb ? 1 : s->n);
    xm_put_ulong(&args, "b_n", tb ? s->k : 1);
    xm_put_ulong(&args, "k_count", s->k);
    return xm_stage_run(&p->stage, NULL, &counts, &args, run, err);
}

static enum xm_status
matmul_run(const struct xm_primitive *base, const struct xm_operand *o,
           const struct xm_run *run, struct xm_error *err)
{
    const struct xm_staged *p = (const struct xm_staged *)base;
    const struct xm_matmul_desc *d = p->desc;
    const struct sizes s = sizes_of(d, o);
    if (s.k != dim_from_last(&o[XM_MATMUL_B], d->transpose_b ? 0 : 1))
        return xm_fail(err, XM_INVALID,
                       "the operands differ in their common dimension K");
    if (s.m == 0 || s.n == 0)
        return XM_OK;
    uint64_t batches = xm_operand_elements(&o[XM_MATMUL_C]) / (s.m * s.n);
    for (uint64_t first = 0; first < batches;) {
        uint64_t step[2];
        uint64_t n = run_length(o, first, batches, &step[0], &step[1]);
        const uint64_t at[3] = {matrix_of(&o[XM_MATMUL_A], &o[XM_MATMUL_C], first),
                                matrix_of(&o[XM_MATMUL_B], &o[XM_MATMUL_C], first),
                                first};
        XM_TRY(run_batches(p, o, &s, at, step, n, run, err));
        first += n;
    }
    return XM_OK;
}

static const struct xm_staged_kind kind = {{"matmul", NULL, matmul_run,
                                            xm_staged_describe, xm_primitive_free,
                                            XM_ROLES(xm_roles_2_1)},
                                           &xm_matmul_table,
                                           sizeof(struct xm_matmul_desc)};

static bool
is_activation(enum xm_element e)
{
    return e == XM_F16 || e == XM_F32;
}

enum xm_status
xm_matmul_create(struct xm_engine *engine, const struct xm_matmul_desc *desc,
                 struct xm_primitive **out, struct xm_error *err)
{
    if (!is_activation(desc->a) || !is_activation(desc->b) || !is_activation(desc->c))
        return xm_fail(err, XM_UNSUPPORTED, "matmul: an operand is neither f16 nor f32");
    return xm_staged_create(&kind, engine, desc, out, err, "-DA=%s -DB=%s -DC=%s",
                            xm_element_text(desc->a), xm_element_text(desc->b),
                            xm_element_text(desc->c));
}
