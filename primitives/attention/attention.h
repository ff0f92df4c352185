/* SPDX-License-Identifier: Apache-2.0
 *
 * attention on a paged KV cache.
 *
 *   inputs     K and V rows into their pages; q, k and v normed and rotated first where asked
 *   decode     T small: split over partitions of the keys, partial (m, l, o) combined
 *   prompt     online softmax over tiles of keys; no scratch that grows with context
 *
 * Cache: pages of `page_tokens` positions, K page [Hkv][page_tokens][D], V page likewise with Dv;
 * f16, f32, or i8 with one f32 scale per (page, head, position) in a buffer of its own. The
 * block table [B][max_pages] i32 says which page holds positions p*page_tokens… of a sequence.
 * Formulas: xm_ref_attention,
 * xm_ref_rms_norm, xm_ref_rope.
 */
#ifndef XM_PRIMITIVES_ATTENTION_ATTENTION_H
#define XM_PRIMITIVES_ATTENTION_ATTENTION_H

#include "primitives/form.h"
#include "runtime/operations/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_attention_desc {
    uint32_t heads_q, heads_kv, d, dv;
    float scale, soft_cap;
    bool causal;
    uint64_t window;
    uint32_t page_tokens;
    enum xm_element element; /* of q, k, v, out: f16 or f32 */
    enum xm_element cache;   /* f16, f32, i8 */
    struct xm_buffer *sinks; /* f32 [Hq]; NULL: none; referenced */
    /* f32 [D], [D], [Dv]: rms_norm of the heads of q, k, v, before they are rotated; NULL: none;
     * referenced */
    struct xm_buffer *q_gamma, *k_gamma, *v_gamma;
    float epsilon;                /* of those norms */
    struct xm_rows_form prepared; /* plain: none */
};
/* past is not an operand's dimension: it travels here. */
struct xm_attention_run {
    uint64_t past; /* positions in the cache before this chunk */
};
const char *xm_attention_supports(const struct xm_device_info *device,
                                  const struct xm_attention_desc *desc);
enum xm_status xm_attention_create(struct xm_engine *engine,
                                   const struct xm_attention_desc *desc,
                                   struct xm_primitive **out, struct xm_error *err);
/* Whether its kernels write PREPARED: of up to XM_PREPARED_ROWS rows (b, t). */
bool xm_attention_emits(const struct xm_primitive *attention);
/* Attention's own plan and run (they need `past`); the generic ones refuse. */
enum xm_status xm_attention_plan(const struct xm_primitive *p,
                                 const struct xm_operand *operands,
                                 const struct xm_attention_run *a,
                                 uint64_t *scratch_bytes, struct xm_error *err);
enum xm_status xm_attention_enqueue(const struct xm_primitive *p,
                                    const struct xm_operand *operands,
                                    const struct xm_attention_run *a,
                                    const struct xm_run *run, struct xm_error *err);
/* Copies page `from` to page `to` in a cache of this shape (beam search, shared prefixes). */
enum xm_status xm_attention_copy_page(const struct xm_operand *cache, uint32_t from,
                                      uint32_t to, struct xm_queue *queue,
                                      struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
