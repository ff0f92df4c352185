/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference of matmul, and reading of stored weights, one row at a time. */
#include <inttypes.h>
#include <string.h>

#include "transformations/graph/evaluate_ops.h"

/* ---- weights -------------------------------------------------------------------- */

bool
xm_eval_takes_weight(enum xm_op op, uint32_t i)
{
    switch (op) {
    case XM_OP_MATMUL:
    case XM_OP_GATHER_MATMUL:
        return i == 1;
    case XM_OP_GATHER:
    case XM_OP_SHAPE_OF:
        return i == 0;
    case XM_OP_MOE:
    case XM_OP_MOE_COMPRESSED:
    case XM_OP_MOE_3GEMM_FUSED_COMPRESSED:
        return (i >= XM_MOE_W_GATE && i <= XM_MOE_W_DOWN) ||
               (i >= XM_MOE_SHARED_GATE && i <= XM_MOE_SHARED_GATE_GATE);
    default:
        return false;
    }
}

bool
xm_eval_weight_of(const struct xm_eval_call *c, uint32_t i, struct xm_weight *w)
{
    const struct xm_tensor *t = c->in[i];
    const struct xm_node *source = xm_in(c->node, i)->node;
    memset(w, 0, sizeof(*w));
    if (!t) {
        if (source->op == XM_OP_WEIGHT)
            *w = source->attr.weight;
        return source->op == XM_OP_WEIGHT;
    }
    if (!t->f || t->rank < 1 || t->rank > 3)
        return false;
    w->element = XM_F32;
    w->rank = t->rank;
    w->cols = (uint64_t)t->dim[t->rank - 1];
    w->rows = t->rank > 1 ? (uint64_t)t->dim[t->rank - 2] : 1;
    w->experts = t->rank > 2 ? (uint64_t)t->dim[0] : 1;
    w->data.p = (const uint8_t *)t->f;
    w->data.n = t->n * sizeof(*t->f);
    return true;
}

enum xm_status
xm_eval_weight(struct xm_eval_call *c)
{
    const struct xm_weight *w = &c->node->attr.weight;
    const struct xm_tensor *out = c->out[0];
    for (uint64_t r = 0; r < w->experts * w->rows; r++)
        xm_weight_row(w, r / w->rows, r % w->rows, out->f + r * w->cols);
    return XM_OK;
}

enum xm_status
xm_eval_ids(const struct xm_eval_call *c, uint32_t i, uint64_t limit, int32_t **out)
{
    const struct xm_tensor *t = c->in[i];
    int32_t *ids = xm_malloc(t->n * sizeof(*ids));
    if (!ids)
        return xm_eval_no_memory(c->err);
    for (uint64_t j = 0; j < t->n; j++) {
        if (t->i[j] < 0 || (uint64_t)t->i[j] >= limit || t->i[j] > INT32_MAX) {
            xm_free(ids);
            return xm_fail(c->err, XM_INVALID,
                           "index %" PRId64 " is outside a dimension of %" PRIu64
                           " elements",
                           t->i[j], limit);
        }
        ids[j] = (int32_t)t->i[j];
    }
    *out = ids;
    return XM_OK;
}

/* ---- matmul --------------------------------------------------------------------- */

/* An operand of a matrix product. A vector counts as a row on the left, as a column on the
 * right. */
struct matrix {
    uint64_t rows, cols;
    bool transpose;
    /* dimensions before the last two, for broadcasting; has no data */
    struct xm_tensor batch;
};

static struct matrix
matrix_of(const struct xm_tensor *t, bool transpose, bool left)
{
    struct matrix m = {1, 1, transpose && t->rank > 1, {.rank = 0}};
    if (t->rank == 1) {
        *(left ? &m.cols : &m.rows) = (uint64_t)t->dim[0];
        return m;
    }
    m.rows = (uint64_t)t->dim[t->rank - 2];
    m.cols = (uint64_t)t->dim[t->rank - 1];
    m.batch.rank = t->rank - 2;
    memcpy(m.batch.dim, t->dim, m.batch.rank * sizeof(*t->dim));
    return m;
}

static void
matmul_tensors(struct xm_eval_call *c)
{
    bool ta = c->node->attr.matmul.transpose_a, tb = c->node->attr.matmul.transpose_b;
    struct matrix a = matrix_of(c->in[0], ta, true), b = matrix_of(c->in[1], tb, false);
    uint64_t m = a.transpose ? a.cols : a.rows, k = a.transpose ? a.rows : a.cols;
    uint64_t n = b.transpose ? b.rows : b.cols;
    uint32_t batch = a.batch.rank > b.batch.rank ? a.batch.rank : b.batch.rank;
    struct xm_walk w;
    uint64_t done = 0;
    xm_walk_begin(&w, batch, c->out[0]->dim); /* walks the matrices */
    (void)xm_walk_add_broadcast(&w, &a.batch);
    (void)xm_walk_add_broadcast(&w, &b.batch);
    while (c->out[0]->n > 0 && xm_walk_next(&w)) {
        uint64_t at_a = (uint64_t)w.at[0] * m * k, at_b = (uint64_t)w.at[1] * k * n;
        xm_ref_matmul(c->in[0]->f + at_a, a.transpose, c->in[1]->f + at_b, b.transpose, m,
                      n, k, c->out[0]->f + done++ * m * n);
    }
}

/* y[T,K] = x[T,N] w for w stored as [N,K]: adds row n of the weight times x[:,n] for all n. */
static enum xm_status
add_weight_rows(const struct xm_weight *w, uint64_t e, const float *x, uint64_t tokens,
                float *y)
{
    float *row = xm_malloc(w->cols * sizeof(*row));
    if (!row)
        return XM_NO_MEMORY;
    memset(y, 0, tokens * w->cols * sizeof(*y));
    for (uint64_t n = 0; n < w->rows; n++) {
        xm_weight_row(w, e, n, row);
        for (uint64_t t = 0; t < tokens; t++) {
            float s = x[t * w->rows + n];
            for (uint64_t k = 0; k < w->cols; k++)
                y[t * w->cols + k] += s * row[k];
        }
    }
    xm_free(row);
    return XM_OK;
}

/* Multiplies x[…,T,K] by a stored weight. For a weight of rank 3 the batch of x has one matrix for
 * each expert, or one for all. */
static enum xm_status
matmul_weight(struct xm_eval_call *c, const struct xm_weight *w)
{
    const struct xm_tensor *x = c->in[0];
    bool tb = c->node->attr.matmul.transpose_b;
    uint64_t k = tb ? w->cols : w->rows, n = tb ? w->rows : w->cols;
    if (c->node->attr.matmul.transpose_a || w->rank < 2 || x->rank < 1)
        return xm_fail(
            c->err, XM_UNSUPPORTED,
            "a stored weight can be multiplied only by a matrix without transpose_a");
    uint64_t per_expert = w->rank == 3 && x->rank > 1 ? (uint64_t)x->dim[x->rank - 2] : 1;
    uint64_t batch = w->rank == 3 && x->rank > 2 ? xm_tensor_size(x, 0, x->rank - 2) : 1;
    uint64_t tokens = w->rank == 3 ? per_expert : k ? x->n / k : 0;
    if ((uint64_t)x->dim[x->rank - 1] != k || (batch != 1 && batch != w->experts) ||
        c->out[0]->n != w->experts * tokens * n)
        return xm_fail(c->err, XM_INVALID, "its operands do not agree");
    for (uint64_t e = 0; e < w->experts && c->out[0]->n > 0; e++) {
        const float *from = x->f + (batch == 1 ? 0 : e * tokens * k);
        float *y = c->out[0]->f + e * tokens * n;
        enum xm_status status = tb ? xm_ref_linear(from, tokens, w, e, NULL, y)
                                   : add_weight_rows(w, e, from, tokens, y);
        if (status != XM_OK)
            return xm_eval_no_memory(c->err);
    }
    return XM_OK;
}

enum xm_status
xm_eval_matmul(struct xm_eval_call *c)
{
    if (!c->in[1])
        return matmul_weight(c, &xm_in(c->node, 1)->node->attr.weight);
    matmul_tensors(c);
    return XM_OK;
}
