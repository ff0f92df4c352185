/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape functions of the ops that only passes create. They mostly check: a pass that passed
 * operands in the wrong order fails here.
 */
#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "transformations/graph/shape.h"

/* Checks that dimension j of operand k can equal d. */
static enum xm_status
expect_dim(struct xm_infer *i, uint32_t k, uint32_t j, struct xm_dim d)
{
    struct xm_dim found = xm_infer_shape(i, k)->dim[j], merged;
    if (!xm_dim_merge(found, d, &merged))
        return xm_shape_fail(i, "dimension %u of operand %u is %lld, not %lld", j, k,
                             (long long)found.n, (long long)d.n);
    return XM_OK;
}

static enum xm_status
expect_shape(struct xm_infer *i, uint32_t k, const struct xm_shape *s)
{
    XM_TRY(xm_infer_rank(i, k, s->rank));
    for (uint32_t j = 0; j < s->rank; j++)
        XM_TRY(expect_dim(i, k, j, s->dim[j]));
    return XM_OK;
}

/* The shape of an operand, checked if it is present: one letter for each dimension. Equal letters
 * mean equal sizes; a dimension with a lower-case letter may be 1 instead. */
struct form {
    uint32_t operand;
    const char *dims;
};

static enum xm_status
expect_forms(struct xm_infer *i, const struct form *forms, size_t n)
{
    const struct xm_dim *size[UCHAR_MAX + 1] = {NULL}; /* sizes of the letters so far */
    for (const struct form *f = forms; f < forms + n; f++) {
        if (!xm_infer_has(i, f->operand))
            continue;
        XM_TRY(xm_infer_rank(i, f->operand, (uint32_t)strlen(f->dims)));
        for (uint32_t j = 0; f->dims[j]; j++) {
            const struct xm_dim *d = &xm_infer_shape(i, f->operand)->dim[j];
            unsigned char letter = (unsigned char)f->dims[j];
            const struct xm_dim **met = &size[toupper(letter)];
            if (islower(letter) && xm_dim_is(*d, 1))
                continue;
            *met = *met ? *met : d;
            XM_TRY(expect_dim(i, f->operand, j, **met));
        }
    }
    return XM_OK;
}

/* Checks the factor of a gated unit: it has the shape of the result, or one more dimension (slices)
 * before the last. */
static enum xm_status
expect_factor(struct xm_infer *i, const struct xm_shape *result)
{
    const struct xm_shape *f = xm_infer_shape(i, XM_LINEAR_FACTOR);
    int64_t slice = i->attr->linear.slice;
    struct xm_shape s = *result;
    uint32_t at = s.rank - 1;
    if (f->rank == s.rank && slice == 0)
        return expect_shape(i, XM_LINEAR_FACTOR, &s);
    if (f->rank != s.rank + 1 || !xm_dim_is_const(f->dim[at]) || slice < 0 ||
        slice >= f->dim[at].n)
        return xm_shape_fail(i, "operand %d, the multiplier, has no slice %lld",
                             XM_LINEAR_FACTOR, (long long)slice);
    s.dim[s.rank++] = s.dim[at];
    s.dim[at] = f->dim[at];
    return expect_shape(i, XM_LINEAR_FACTOR, &s);
}

/* Checks x [..,K], W [N,K], bias [N] of segment s; the product is [..,N]. */
static enum xm_status
shape_segment(struct xm_infer *i, uint32_t s, struct xm_type *out)
{
    const struct xm_shape *x = xm_infer_shape(i, XM_LINEAR_X);
    uint32_t w = XM_LINEAR_W + s * XM_LINEAR_SEGMENT, bias = w + 1;
    XM_TRY(xm_infer_rank(i, w, 2));
    XM_TRY(expect_dim(i, w, 1, x->dim[x->rank - 1]));
    *out = *xm_infer_type(i, XM_LINEAR_X);
    out->shape.dim[x->rank - 1] = xm_infer_shape(i, w)->dim[0];
    if (!xm_infer_has(i, bias))
        return XM_OK;
    XM_TRY(xm_infer_rank(i, bias, 1));
    return expect_dim(i, bias, 0, xm_infer_shape(i, w)->dim[0]);
}

static enum xm_status
shape_glu(struct xm_infer *i, uint32_t segments)
{
    bool has_factor = xm_infer_has(i, XM_LINEAR_FACTOR);
    struct xm_type up;
    if (segments + has_factor != 2)
        return xm_shape_fail(
            i, "a gated unit needs two weights, or one weight and a multiplier");
    XM_TRY(shape_segment(i, 0, &i->out[0].type));
    if (has_factor)
        return expect_factor(i, &i->out[0].type.shape);
    XM_TRY(shape_segment(i, 1, &up));
    return expect_dim(i, XM_LINEAR_W + XM_LINEAR_SEGMENT, 0,
                      xm_infer_shape(i, XM_LINEAR_W)->dim[0]);
}

/* One result for each segment; if there is only one, it may have an addend. Or one result for a
 * gated unit. */
enum xm_status
xm_shape_linear(struct xm_infer *i)
{
    uint32_t segments = (i->n_in - XM_LINEAR_W) / XM_LINEAR_SEGMENT;
    if (i->n_in != XM_LINEAR_W + segments * XM_LINEAR_SEGMENT ||
        xm_infer_shape(i, XM_LINEAR_X)->rank < 1)
        return xm_shape_fail(i, "linear needs an operand of rank 1 or more, and a weight "
                                "and a bias for each segment");
    if (i->attr->linear.glu)
        return shape_glu(i, segments);
    for (uint32_t s = 0; s < segments; s++)
        XM_TRY(shape_segment(i, s, &i->out[s].type));
    if (!xm_infer_has(i, XM_LINEAR_ADDEND))
        return XM_OK;
    if (segments != 1)
        return xm_shape_fail(i, "an addend needs exactly one result, found %u", segments);
    return expect_shape(i, XM_LINEAR_ADDEND, &i->out[0].type.shape);
}

enum xm_status
xm_shape_rms_norm(struct xm_infer *i)
{
    const struct xm_shape *x = xm_infer_shape(i, 0), *gamma = xm_infer_shape(i, 1);
    i->out[0].type = *xm_infer_type(i, 0);
    if (x->rank == 0)
        return xm_shape_fail(i, "a norm needs an operand of rank 1 or more");
    if (gamma->rank > x->rank)
        return xm_shape_fail(i, "gamma has a higher rank than operand 0");
    for (uint32_t j = 0; j < gamma->rank; j++) {
        bool last = j + 1 == gamma->rank;
        if (xm_dim_is(gamma->dim[j], 1) && last)
            continue;
        XM_TRY(expect_dim(i, 1, j, last ? x->dim[x->rank - 1] : xm_dim_const(1)));
    }
    return XM_OK;
}

/* x0, x1, … [..,N] of one type, then constants [N] or [1]; the results have the type of x0. */
enum xm_status
xm_shape_row_chain(struct xm_infer *i)
{
    const struct xm_type *x = xm_infer_type(i, 0);
    struct xm_row_chain chain;
    XM_TRY(xm_row_chain_parse(i->attr->row_chain.steps, &chain, i->err));
    if (i->n_in != chain.n_x + chain.n_c || i->n_out != chain.n_y || x->shape.rank == 0)
        return xm_shape_fail(i, "its steps read %u rows and %u constants", chain.n_x,
                             chain.n_c);
    for (uint32_t k = 1; k < chain.n_x; k++) {
        if (xm_infer_type(i, k)->element != x->element)
            return xm_shape_fail(i, "operand %u and operand 0 differ in type", k);
        XM_TRY(expect_shape(i, k, &x->shape));
    }
    for (uint32_t k = chain.n_x; k < i->n_in; k++) {
        XM_TRY(xm_infer_rank(i, k, 1));
        if (!xm_dim_is(xm_infer_shape(i, k)->dim[0], 1))
            XM_TRY(expect_dim(i, k, 0, x->shape.dim[x->shape.rank - 1]));
    }
    for (uint32_t k = 0; k < i->n_out; k++)
        i->out[k].type = *x;
    return XM_OK;
}

static enum xm_status
check_rotated(struct xm_infer *i, struct xm_dim r, struct xm_dim d)
{
    if (xm_dim_is_const(r) && (r.n % 2 || (xm_dim_is_const(d) && r.n > d.n)))
        return xm_shape_fail(i, "%lld dimensions of each head cannot be rotated",
                             (long long)r.n);
    return XM_OK;
}

/* x [B,T,H,D], cos and sin [B or 1,T,R]; R must be even and at most D. */
enum xm_status
xm_shape_rope(struct xm_infer *i)
{
    static const struct form forms[] = {{0, "BTHD"}, {1, "bTR"}, {2, "bTR"}};
    i->out[0].type = *xm_infer_type(i, 0);
    XM_TRY(expect_forms(i, forms, XM_ARRAY_LEN(forms)));
    return check_rotated(i, xm_infer_shape(i, 1)->dim[2], xm_infer_shape(i, 0)->dim[3]);
}

/* positions [B,T], frequencies [R] -> cos and sin [B,T,R], or [B,T,2R]. */
enum xm_status
xm_shape_rope_tables(struct xm_infer *i)
{
    XM_TRY(xm_infer_rank(i, 0, 2));
    XM_TRY(xm_infer_rank(i, 1, 1));
    const struct xm_shape *p = xm_infer_shape(i, 0);
    struct xm_dim r = xm_infer_shape(i, 1)->dim[0];
    if (!xm_dim_is_const(r) || r.n < 1 || r.n > INT32_MAX / 2)
        return xm_shape_fail(i, "the number of frequencies is not known");
    i->out[0].type.element = XM_F32;
    i->out[0].type.shape = (struct xm_shape){
        .rank = 3,
        .dim = {p->dim[0], p->dim[1],
                xm_dim_const(i->attr->rope_tables.twice ? 2 * r.n : r.n)}};
    i->out[1].type = i->out[0].type;
    return XM_OK;
}

/* ---- attention --------------------------------------------------------------------- */

static enum xm_status
check_heads(struct xm_infer *i)
{
    struct xm_dim q = xm_infer_shape(i, XM_ATTENTION_Q)->dim[2];
    struct xm_dim kv = xm_infer_shape(i, XM_ATTENTION_K)->dim[2];
    if (xm_dim_is_const(q) && xm_dim_is_const(kv) && (kv.n < 1 || q.n % kv.n != 0))
        return xm_shape_fail(i, "%lld query heads cannot share %lld key heads",
                             (long long)q.n, (long long)kv.n);
    return XM_OK;
}

/* Checks that operands that need each other are present together. */
static enum xm_status
check_presence(struct xm_infer *i)
{
    static const uint32_t normed[] = {XM_ATTENTION_Q, XM_ATTENTION_K, XM_ATTENTION_V};
    if (!xm_infer_has(i, XM_ATTENTION_Q) ||
        xm_infer_has(i, XM_ATTENTION_K) != xm_infer_has(i, XM_ATTENTION_V))
        return xm_shape_fail(i, "attention needs a query, and key and value together");
    if (xm_infer_has(i, XM_ATTENTION_COS) != xm_infer_has(i, XM_ATTENTION_SIN))
        return xm_shape_fail(i, "a rotation needs cos and sin");
    for (uint32_t j = 0; j < XM_ARRAY_LEN(normed); j++)
        if (xm_infer_has(i, XM_ATTENTION_Q_GAMMA + j) && !xm_infer_has(i, normed[j]))
            return xm_shape_fail(
                i, "operand %u is the weight of a norm whose operand is absent",
                XM_ATTENTION_Q_GAMMA + j);
    return XM_OK;
}

/* Letters: B sequences of T tokens, S positions (past and new); H query heads of size D read G
 * heads of keys of size D and of values of size E. */
enum xm_status
xm_shape_attention(struct xm_infer *i)
{
    static const struct form forms[] = {
        {XM_ATTENTION_Q, "BTHD"},      {XM_ATTENTION_K, "BTGD"},
        {XM_ATTENTION_V, "BTGE"},      {XM_ATTENTION_BEAM_IDX, "N"},
        {XM_ATTENTION_KEY_MASK, "BS"}, {XM_ATTENTION_MASK, "bhTS"},
        {XM_ATTENTION_COS, "bTR"},     {XM_ATTENTION_SIN, "bTR"},
        {XM_ATTENTION_Q_GAMMA, "D"},   {XM_ATTENTION_K_GAMMA, "D"},
        {XM_ATTENTION_V_GAMMA, "E"},
    };
    XM_TRY(check_presence(i));
    XM_TRY(expect_forms(i, forms, XM_ARRAY_LEN(forms)));
    i->out[0].type = *xm_infer_type(i, XM_ATTENTION_Q);
    if (xm_infer_has(i, XM_ATTENTION_COS))
        XM_TRY(check_rotated(i, xm_infer_shape(i, XM_ATTENTION_COS)->dim[2],
                             i->out[0].type.shape.dim[3]));
    if (!xm_infer_has(i, XM_ATTENTION_K))
        return XM_OK;
    i->out[0].type.shape.dim[3] = xm_infer_shape(i, XM_ATTENTION_V)->dim[3];
    return check_heads(i);
}

/* ---- mixture of experts ------------------------------------------------------------ */

/* Checks that operand k, if present, has one row for each expert: [E,N] or [E,1,N]. */
static enum xm_status
expect_rows(struct xm_infer *i, uint32_t k, struct xm_dim experts, struct xm_dim n)
{
    const struct xm_shape *rows = xm_infer_shape(i, k);
    if (!xm_infer_has(i, k))
        return XM_OK;
    if (rows->rank != 2 && (rows->rank != 3 || !xm_dim_is(rows->dim[1], 1)))
        return xm_shape_fail(i, "operand %u must be [E,N] or [E,1,N]", k);
    XM_TRY(expect_dim(i, k, 0, experts));
    return expect_dim(i, k, rows->rank - 1, n);
}

/* a [S or 1,T,K], W [E,N,K], ids [T,S], bias [E,N], [E,1,N] or absent -> [S,T,N]. */
enum xm_status
xm_shape_gather_matmul(struct xm_infer *i)
{
    const struct xm_shape *a = xm_infer_shape(i, 0), *w = xm_infer_shape(i, 1),
                          *ids = xm_infer_shape(i, 2);
    static const struct form forms[] = {{0, "sTK"}, {1, "ENK"}, {2, "TS"}};
    XM_TRY(expect_forms(i, forms, XM_ARRAY_LEN(forms)));
    XM_TRY(expect_rows(i, 3, w->dim[0], w->dim[1]));
    i->out[0].type =
        (struct xm_type){xm_infer_type(i, 0)->element,
                         {.rank = 3, .dim = {ids->dim[1], a->dim[1], w->dim[1]}}};
    return XM_OK;
}

/* Checks that operands w and bias, if present, are a weight [E,rows,cols] and its bias. */
static enum xm_status
expect_experts(struct xm_infer *i, uint32_t w, uint32_t bias, int64_t rows, int64_t cols)
{
    const int64_t d[] = {xm_moe_own_experts(&i->attr->moe), rows, cols};
    if (!xm_infer_has(i, w))
        return xm_infer_has(i, bias)
                   ? xm_shape_fail(i, "operand %u is a bias whose weight is absent", bias)
                   : XM_OK;
    XM_TRY(xm_infer_rank(i, w, 3));
    for (uint32_t j = 0; j < 3; j++)
        XM_TRY(expect_dim(i, w, j, xm_dim_const(d[j])));
    return expect_rows(i, bias, xm_dim_const(d[0]), xm_dim_const(rows));
}

/* Checks that operand k, if present, has one number for each expert. */
static enum xm_status
expect_vector(struct xm_infer *i, uint32_t k, struct xm_dim experts)
{
    const struct xm_shape *s = xm_infer_shape(i, k);
    if (!xm_infer_has(i, k))
        return XM_OK;
    for (uint32_t j = 0; j + 1 < s->rank; j++)
        if (!xm_dim_is(s->dim[j], 1))
            return xm_shape_fail(i, "operand %u must have an element for each expert", k);
    if (s->rank < 1)
        return xm_shape_fail(i, "operand %u must have an element for each expert", k);
    return expect_dim(i, k, s->rank - 1, experts);
}

/* Checks the routing operands: logits, or weights and ids, one row for each token. */
static enum xm_status
check_routing(struct xm_infer *i, const struct xm_moe_attr *m)
{
    static const uint32_t rows[] = {XM_MOE_ROUTING, XM_MOE_IDS};
    bool fused = i->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED;
    bool has_ids = xm_infer_has(i, XM_MOE_IDS);
    if (!fused && !has_ids)
        return xm_shape_fail(i, "the ids of the chosen experts are missing");
    if (has_ids && xm_infer_has(i, XM_MOE_ROUTER_BIAS))
        return xm_shape_fail(
            i, "a router bias needs logits, but the ids of the chosen experts are given");
    if (!fused && xm_infer_has(i, XM_MOE_EXPERT_SCALE))
        return xm_shape_fail(
            i, "only moe_3gemm_fused_compressed can have a scale for each expert");
    for (uint32_t j = 0; j < (has_ids ? 2u : 1u); j++) {
        const struct xm_shape *s = xm_infer_shape(i, rows[j]);
        if (s->rank < 1)
            return xm_shape_fail(i, "operand %u, the routing, must have rank 1 or more",
                                 rows[j]);
        XM_TRY(expect_dim(i, rows[j], s->rank - 1,
                          xm_dim_const(has_ids ? m->routing.top_k : m->experts)));
    }
    XM_TRY(expect_vector(i, XM_MOE_ROUTER_BIAS, xm_dim_const(m->experts)));
    return expect_vector(i, XM_MOE_EXPERT_SCALE, xm_dim_const(m->experts));
}

enum xm_status
xm_shape_moe(struct xm_infer *i)
{
    static const uint32_t needed[] = {XM_MOE_HIDDEN, XM_MOE_ROUTING, XM_MOE_W_GATE,
                                      XM_MOE_W_DOWN};
    const struct xm_moe_attr *m = &i->attr->moe;
    const struct xm_shape *hidden = xm_infer_shape(i, XM_MOE_HIDDEN);
    bool apart = m->gate_up == XM_GATE_UP_APART;
    int64_t rows = apart ? m->inter : 2 * m->inter;
    for (uint32_t k = 0; k < XM_ARRAY_LEN(needed); k++)
        if (!xm_infer_has(i, needed[k]))
            return xm_shape_fail(i, "operand %u is missing", needed[k]);
    const int64_t top_k = m->routing.top_k;
    if (m->hidden < 1 || m->inter < 1 || m->inter > INT32_MAX || m->experts < 1 ||
        top_k < 1 || top_k > m->experts)
        return xm_shape_fail(i, "%lld of %lld experts of size %lld x %lld are not valid",
                             (long long)top_k, (long long)m->experts,
                             (long long)m->hidden, (long long)m->inter);
    if (m->first_expert < 0 || m->own_experts < 0 ||
        m->first_expert > m->experts - xm_moe_own_experts(m))
        return xm_shape_fail(
            i, "first expert %lld and %lld own experts exceed the %lld experts",
            (long long)m->first_expert, (long long)m->own_experts, (long long)m->experts);
    if (m->limit < 0)
        return xm_shape_fail(i, "the limit expert_alpha is below 0");
    if (xm_infer_has(i, XM_MOE_ADDEND) && i->op != XM_OP_MOE_3GEMM_FUSED_COMPRESSED)
        return xm_shape_fail(i, "only moe_3gemm_fused_compressed can have an addend");
    if (hidden->rank < 2)
        return xm_shape_fail(i, "operand 0, the hidden states, must have rank 2 or more");
    if (apart != xm_infer_has(i, XM_MOE_W_UP))
        return xm_shape_fail(i, "operand %d, the up projection, contradicts gate_up=%s",
                             XM_MOE_W_UP, xm_gate_up_text(m->gate_up));
    XM_TRY(expect_dim(i, XM_MOE_HIDDEN, hidden->rank - 1, xm_dim_const(m->hidden)));
    if (xm_infer_has(i, XM_MOE_ADDEND))
        XM_TRY(expect_shape(i, XM_MOE_ADDEND, hidden));
    XM_TRY(check_routing(i, m));
    XM_TRY(expect_experts(i, XM_MOE_W_GATE, XM_MOE_BIAS_GATE, rows, m->hidden));
    XM_TRY(expect_experts(i, XM_MOE_W_UP, XM_MOE_BIAS_UP, m->inter, m->hidden));
    XM_TRY(expect_experts(i, XM_MOE_W_DOWN, XM_MOE_BIAS_DOWN, m->hidden, m->inter));
    XM_TRY(expect_rows(i, XM_MOE_FACTOR, xm_dim_const(xm_moe_own_experts(m)),
                       xm_dim_const(m->inter)));
    i->out[0].type = *xm_infer_type(i, XM_MOE_HIDDEN);
    return XM_OK;
}

/* logits [..,E] -> weights f32 [..,k], ids i32 [..,k]. */
enum xm_status
xm_shape_moe_router(struct xm_infer *i)
{
    struct xm_shape s = *xm_infer_shape(i, 0);
    int64_t k = i->attr->router.top_k;
    if (s.rank < 1)
        return xm_shape_fail(i, "operand 0, the logits, must have rank 1 or more");
    struct xm_dim experts = s.dim[s.rank - 1];
    if (k < 1 || (xm_dim_is_const(experts) && k > experts.n))
        return xm_shape_fail(i, "top_k is %lld, expected 1 to the number of experts",
                             (long long)k);
    for (uint32_t j = 1; j <= 2; j++)
        XM_TRY(expect_vector(i, j, experts));
    s.dim[s.rank - 1] = xm_dim_const(k);
    i->out[0].type = (struct xm_type){XM_F32, s};
    i->out[1].type = (struct xm_type){XM_I32, s};
    return XM_OK;
}
