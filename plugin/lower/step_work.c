/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/lower/step_work.h"

/* ---- operands ------------------------------------------------------------------------ */

/* Returns the size of a dimension under the bindings; 0: they do not determine it. */
static uint64_t
dim_of(const struct xm_shape *shape, uint32_t axis, const struct xm_bindings *b)
{
    int64_t n = 0;
    xm_dim_eval(shape->dim[axis], b->list, b->n, &n, NULL);
    return (uint64_t)n;
}

static uint64_t
elements_of(const struct xm_shape *shape, const struct xm_bindings *b)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        n *= dim_of(shape, i, b);
    return n;
}

static uint64_t
bytes_of(const struct xm_program *p, uint32_t value, const struct xm_bindings *b)
{
    const struct xm_program_value *v = &p->values[value];
    uint64_t bytes = 0;
    xm_element_bytes(v->element, elements_of(&v->shape, b), &bytes);
    return bytes;
}

static const struct xm_shape *
result_of(const struct xm_program *p, const struct xm_step *s)
{
    return &p->values[s->operand[s->cost.result].value].shape;
}

static uint64_t
rows_of(const struct xm_program *p, const struct xm_step *s, const struct xm_bindings *b)
{
    const struct xm_shape *shape = result_of(p, s);
    uint64_t n = 1;
    for (uint32_t i = 0; i + 1 < shape->rank; i++)
        n *= dim_of(shape, i, b);
    return n;
}

/* Returns whether the bytes of an operand count. The key mask does not, because it is read only if
 * there is padding. A form does not, because it is a copy of another value. */
static bool
is_counted(const struct xm_program *p, const struct xm_step *s, uint32_t operand)
{
    const uint32_t value = s->operand[operand].value;
    return value != XM_NO_VALUE && !p->values[value].is_form &&
           !(s->kind == XM_STEP_ATTENTION && operand == XM_ATTENTION_KEY_MASK);
}

/* Finds the operand of a gather or slice, of which only as many bytes are read as the result has,
 * and the result. False: the step is neither. */
static bool
find_picked(const struct xm_step *s, uint32_t *operand, uint32_t *result)
{
    const bool is_slice = s->kind == XM_STEP_COPY && s->copy == XM_COPY_SLICE;
    *operand = is_slice ? 0 : s->cost.picked - 1;
    *result = is_slice ? 1 : s->cost.result;
    return is_slice || s->cost.picked;
}

static uint64_t
activation_bytes(const struct xm_program *p, const struct xm_step *s,
                 const struct xm_bindings *b)
{
    uint64_t sum = 0;
    uint32_t picked, result;
    const bool picks = find_picked(s, &picked, &result);
    for (uint32_t i = 0; i < s->n_operands; i++) {
        if (!is_counted(p, s, i))
            continue;
        const uint64_t bytes = bytes_of(p, s->operand[i].value, b);
        const uint64_t most =
            picks && i == picked ? bytes_of(p, s->operand[result].value, b) : bytes;
        sum += bytes < most ? bytes : most;
    }
    return sum;
}

/* ---- attention ----------------------------------------------------------------------- */

static uint64_t
within(uint64_t positions, uint64_t window)
{
    return window && window < positions ? window : positions;
}

/* Returns the sum over `tokens` tokens behind `past` positions of the positions that each sees. */
static uint64_t
positions_seen(const struct xm_step_cost *c, uint64_t past, uint64_t tokens)
{
    uint64_t sum = 0;
    for (uint64_t t = 0; t < tokens; t++)
        sum += within(past + t + 1, c->window) + (c->causal ? 0 : tokens - 1 - t);
    return sum;
}

static void
add_attention(const struct xm_step *s, const struct xm_attention_run *a,
              struct xm_step_work *out)
{
    const bool writes = s->operand[XM_ATTENTION_K].value != XM_NO_VALUE;
    for (uint32_t i = 0; i < a->n_sequences; i++) {
        const uint64_t past = (uint64_t)a->past_lens[i];
        const uint64_t tokens =
            (uint64_t)(a->subsequence_begins[i + 1] - a->subsequence_begins[i]);
        const uint64_t read = tokens ? within(past + 1, s->cost.window) + tokens - 1 : 0;
        out->cache_bytes += s->cost.key_bytes * (read + (writes ? tokens : 0));
        out->multiply_adds +=
            s->cost.key_multiply_adds * positions_seen(&s->cost, past, tokens);
    }
}

/* ---- all of it ----------------------------------------------------------------------- */

uint64_t
xm_step_weight_bytes(const struct xm_step_cost *c, uint64_t rows)
{
    const uint64_t experts = c->expert_bytes * rows;
    return (rows ? c->bytes - c->expert_bytes : 0) + c->row_bytes * rows +
           (experts < c->all_expert_bytes ? experts : c->all_expert_bytes);
}

/* Returns the multiply-adds of a product of activations: the result's elements times the size of
 * the axis that is summed over. */
static uint64_t
inner_multiply_adds(const struct xm_program *p, const struct xm_step *s,
                    const struct xm_bindings *b)
{
    const struct xm_shape *a = &p->values[s->operand[0].value].shape;
    return elements_of(result_of(p, s), b) * dim_of(a, a->rank - s->cost.inner, b);
}

void
xm_step_find_work(const struct xm_program *p, const struct xm_step *s,
                  const struct xm_bindings *bindings, const struct xm_attention_run *a,
                  struct xm_step_work *out)
{
    const struct xm_step_cost *c = &s->cost;
    const uint64_t rows = c->bytes || c->row_bytes ? rows_of(p, s, bindings) : 0;
    *out = (struct xm_step_work){.weight_bytes = xm_step_weight_bytes(c, rows),
                                 .activation_bytes = activation_bytes(p, s, bindings),
                                 .multiply_adds = c->multiply_adds * rows};
    if (c->inner)
        out->multiply_adds += inner_multiply_adds(p, s, bindings);
    if (a)
        add_attention(s, a, out);
}
