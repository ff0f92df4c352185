/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations in the form that their reader multiplies (primitives/form.h). The step that computes
 * a value also writes its first rows in this form, to a second value. The reader uses the second
 * value and saves the launch that would prepare these rows. The form is known before the readers
 * are lowered, because it follows from the device and the readers' weights.
 */
#include "plugin/lower/lower.h"
#include "primitives/linear/linear.h"
#include "primitives/moe/moe.h"

static bool
is_relabelling(enum xm_op op)
{
    return op == XM_OP_RESHAPE || op == XM_OP_SQUEEZE || op == XM_OP_UNSQUEEZE;
}

/* The operations that can read activations in another form than plain rows. The activations are
 * input 0, the weight is input `weight`; `reads` returns the form that a kernel for them reads. */
static const struct {
    enum xm_op op;
    uint32_t weight;
    struct xm_rows_form (*reads)(struct xm_engine *engine, const struct xm_weight *w,
                                 enum xm_element src, uint32_t factor);
} readers[] = {
    {XM_OP_MATMUL, 1, xm_linear_reads},
    {XM_OP_LINEAR, XM_LINEAR_W, xm_linear_reads},
    {XM_OP_MOE_3GEMM_FUSED_COMPRESSED, XM_MOE_W_GATE, xm_moe_reads},
};

/* The form that the reader with the largest weight so far reads. */
struct wish {
    struct xm_rows_form form;
    uint64_t weight; /* bytes */
};

/* Replaces *best if node n multiplies v by a larger weight, in a form other than plain rows. */
static void
ask_reader(struct xm_lower *l, const struct xm_node *n, const struct xm_value *v,
           uint64_t cols, struct wish *best)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(readers); i++) {
        if (readers[i].op != n->op || xm_in(n, 0) != v)
            continue;
        const struct xm_node *node = xm_in(n, readers[i].weight)->node;
        const struct xm_weight *w = &node->attr.weight;
        if (node->op != XM_OP_WEIGHT || w->cols != cols ||
            xm_weight_bytes(w) <= best->weight)
            continue;
        const struct xm_rows_form form = readers[i].reads(
            l->p->engine, w, xm_lower_element(v), xm_lower_factor_columns(l, n));
        if (xm_rows_are_prepared(&form))
            *best = (struct wish){form, xm_weight_bytes(w)};
    }
}

static void
ask_readers(struct xm_lower *l, const struct xm_value *v, uint64_t cols,
            struct wish *best)
{
    for (const struct xm_use *u = v->uses; u; u = u->next) {
        if (is_relabelling(u->user->op))
            ask_readers(l, &u->user->out[0], cols, best);
        else
            ask_reader(l, u->user, v, cols, best);
    }
}

struct xm_rows_form
xm_lower_form_wanted(struct xm_lower *l, const struct xm_value *v, uint64_t cols)
{
    struct wish best = {{XM_FORM_ROWS, 0, 0}, 0};
    ask_readers(l, v, cols, &best);
    return best.form;
}

enum xm_status
xm_lower_prepared(struct xm_lower *l, uint32_t of, const struct xm_rows_form *form,
                  uint64_t cols, struct xm_step_operand *out)
{
    struct xm_shape shape = {.rank = 2};
    shape.dim[0] = xm_dim_const(XM_FEW_TOKENS);
    shape.dim[1] = xm_dim_const((int64_t)xm_prepared_words(form, cols));
    XM_TRY(xm_lower_new_value(l, NULL, XM_I32, &shape, XM_PLACE_ACTIVATION, &out->value));
    struct xm_program_value *v = &l->p->values[xm_program_root(l->p, of)];
    v->prepared = out->value;
    v->prepared_cols = cols;
    v->form = *form;
    return XM_OK;
}

uint32_t
xm_lower_prepared_of(const struct xm_lower *l, uint32_t id, uint64_t cols,
                     struct xm_rows_form *form)
{
    const struct xm_program_value *v = &l->p->values[xm_program_root(l->p, id)];
    if (!xm_rows_are_prepared(&v->form) || v->prepared_cols != cols)
        return XM_NO_VALUE;
    *form = v->form;
    return v->prepared;
}

enum xm_status
xm_lower_emit(struct xm_lower *l, struct xm_primitive *primitive,
              const struct xm_step_operand *of, const struct xm_rows_form *form,
              uint64_t cols, struct xm_step_operand *out)
{
    enum xm_status status = xm_lower_prepared(l, of->value, form, cols, out);
    if (status != XM_OK)
        xm_primitive_destroy(primitive);
    return status;
}
