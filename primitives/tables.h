/* SPDX-License-Identifier: Apache-2.0
 *
 * The variant tables of all steps, each defined beside the primitive that owns it.
 */
#ifndef XM_PRIMITIVES_TABLES_H
#define XM_PRIMITIVES_TABLES_H

#include "primitives/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct xm_variant_table xm_attention_combine_table;
extern const struct xm_variant_table xm_attention_decode_table;
extern const struct xm_variant_table xm_attention_inputs_table;
extern const struct xm_variant_table xm_attention_prompt_table;
extern const struct xm_variant_table xm_copy_table;
extern const struct xm_variant_table xm_eltwise_table;
extern const struct xm_variant_table xm_embedding_table;
extern const struct xm_variant_table xm_gather_table;
extern const struct xm_variant_table xm_gather_matmul_table;
extern const struct xm_variant_table xm_glu_table;
extern const struct xm_variant_table xm_matmul_table;
extern const struct xm_variant_table xm_moe_cache_fetch_table;
extern const struct xm_variant_table xm_moe_cache_lookup_table;
extern const struct xm_variant_table xm_moe_route_table;
extern const struct xm_variant_table xm_reduce_table;
extern const struct xm_variant_table xm_rms_norm_table;
extern const struct xm_variant_table xm_rope_table;
extern const struct xm_variant_table xm_rope_tables_table;
extern const struct xm_variant_table xm_row_chain_table;
extern const struct xm_variant_table xm_softmax_table;
extern const struct xm_variant_table xm_topk_table;

/* Primitives of several steps have theirs in one array. */
enum { XM_LINEAR_N_TABLES = 3, XM_MOE_N_TABLES = 7 };
extern const struct xm_variant_table xm_linear_tables[XM_LINEAR_N_TABLES];
extern const struct xm_variant_table xm_moe_tables[XM_MOE_N_TABLES];

#ifdef __cplusplus
}
#endif
#endif
