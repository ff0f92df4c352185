/* SPDX-License-Identifier: Apache-2.0
 *
 * The first stage of attention (kernels/cl/include/attention_inputs.h has the formulas).
 */
#include "primitives/attention/attention_inputs.h"

#include "primitives/attention/attention_cache.h"
#include "primitives/tables.h"

/* clang-format off */
static const struct xm_variant variants[] = {
    {"attention_inputs_vec", XM_FAMILY_VEC, 0, NULL, {XM_SPAN}},
    {"attention_inputs_sg", XM_FAMILY_SG, 0, NULL, {XM_LANES}},
    {"attention_inputs_gen", XM_FAMILY_GEN, 0, NULL, {XM_GROUP, XM_GROUP_ITEMS}},
    {"attention_inputs_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM}},
};
/* clang-format on */
const struct xm_variant_table xm_attention_inputs_table = {"attention_inputs", variants,
                                                           XM_ARRAY_LEN(variants)};

bool
xm_attention_changes_q(const struct xm_attention_desc *d,
                       const struct xm_operand *operands)
{
    return d->q_gamma || operands[XM_ATTENTION_COS].rank > 0 ||
           xm_attention_rotates(d->k_cache);
}

uint64_t
xm_attention_q_bytes(const struct xm_attention_desc *d,
                     const struct xm_attention_shape *s)
{
    return s->rows * d->heads_q * d->d * (xm_element_bits(d->element) / 8);
}

/* Returns the arguments of INPUT_PARAMETERS of kernels/cl/include/attention_inputs.h. */
static struct xm_args
arguments(const struct xm_attention_desc *d, const struct xm_operand *operands,
          const struct xm_attention_shape *s, const struct xm_buffer *q_out,
          uint64_t rows)
{
    const struct xm_operand *cos = &operands[XM_ATTENTION_COS];
    bool writes = operands[XM_ATTENTION_K].buffer, rotates = cos->buffer;
    struct xm_args a = {.n = 0};
    xm_put_buffer(&a, "q", operands[XM_ATTENTION_Q].buffer);
    xm_put_buffer(&a, "k", operands[XM_ATTENTION_K].buffer);
    xm_put_buffer(&a, "v", operands[XM_ATTENTION_V].buffer);
    xm_put_buffer(&a, "q_out", q_out);
    xm_attention_put_cache(&a, operands, s->run);
    xm_put_uint(&a, "sequences", s->sequences);
    xm_put_buffer(&a, "cosines", cos->buffer);
    xm_put_buffer(&a, "sines", operands[XM_ATTENTION_SIN].buffer);
    xm_put_buffer(&a, "q_gamma", d->q_gamma);
    xm_put_buffer(&a, "k_gamma", d->k_gamma);
    xm_put_buffer(&a, "v_gamma", d->v_gamma);
    xm_put_ulong(&a, "rows", rows);
    xm_put_ulong(&a, "table_tokens", rotates ? (uint64_t)(cos->dim[0] * cos->dim[1]) : 1);
    xm_put_uint(&a, "rotated", rotates ? (uint64_t)cos->dim[2] : 0);
    xm_put_uint(&a, "q_heads", q_out ? d->heads_q : 0);
    xm_put_uint(&a, "kv_heads", writes ? d->heads_kv : 0);
    xm_put_float(&a, "epsilon", d->epsilon);
    return a;
}

enum xm_status
xm_attention_take_inputs(const struct xm_stage *stage, const struct xm_attention_desc *d,
                         const struct xm_operand *operands,
                         const struct xm_attention_shape *s, struct xm_buffer *q_out,
                         const struct xm_run *run, struct xm_error *err)
{
    uint64_t heads = (q_out ? d->heads_q : 0) +
                     (operands[XM_ATTENTION_K].buffer ? 2 * (uint64_t)d->heads_kv : 0);
    uint64_t rows = s->rows * heads;
    const struct xm_args a = arguments(d, operands, s, q_out, rows);
    return xm_stage_go(stage, NULL, rows, &a, run, err);
}
