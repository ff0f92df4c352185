/* SPDX-License-Identifier: Apache-2.0
 *
 * attention on a paged KV cache.
 *
 *   inputs     norms and rotates q, k and v where asked, then writes K and V to their pages
 *   decode     few tokens a sequence: the keys are cut into partitions; a second launch combines
 *              their partial results (maximum m, sum l, output o)
 *   prompt     online softmax over tiles of keys; no scratch that grows with the context
 *
 * A run has sequences of any lengths (runtime/operations/attention_operation.h). Sequences that
 * decode should come before prompts: another order is correct, but slower.
 *
 * Cache: a layer has pages of `page_tokens` positions in up to XM_KV_SLABS slabs, so that it grows
 * without a copy. A page holds K and V of all heads at its positions (struct xm_kv_page). K and V
 * are f16, f32, i8 or u4. i8 and u4 have a scale of one byte for each block of 16 elements of a
 * head (kernels/cl/include/attention_cache.h has the formulas), and their rows are rotated: K, V
 * and queries are multiplied by a Walsh-Hadamard matrix (xm_ref_rotate) before they are stored or
 * used, and the weighted sum of V is rotated back. A page word is the number of a slab and of a
 * page in it. Formulas: xm_ref_attention, xm_ref_rms_norm, xm_ref_rope.
 */
#ifndef XM_PRIMITIVES_ATTENTION_ATTENTION_H
#define XM_PRIMITIVES_ATTENTION_ATTENTION_H

#include "primitives/form.h"
#include "runtime/operations/attention_operation.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_attention_desc {
    uint32_t heads_q, heads_kv, d, dv;
    float scale, soft_cap;
    bool causal;
    uint64_t window;
    uint32_t page_tokens;
    enum xm_element element;          /* of q, k, v, out: f16 or f32 */
    enum xm_element k_cache, v_cache; /* f16, f32, i8, u4 */
    struct xm_buffer *sinks;          /* f32 [Hq]; NULL: none; referenced */
    /* f32 [D], [D], [Dv]: gamma of an rms_norm of each head of q, k, v, before the rotation by
     * position; NULL: no norm; referenced */
    struct xm_buffer *q_gamma, *k_gamma, *v_gamma;
    float epsilon; /* of those norms */
    /* form of the prepared results; plain rows: not written */
    struct xm_rows_form prepared;
};
enum { XM_KV_SLABS = 8, XM_KV_SLAB_SHIFT = 28, XM_KV_BLOCK = 16 /* elements a scale */ };
/* The layout of a page of the KV cache: byte offsets of its parts, and its size. K
 * [Hkv][page_tokens][D] is at offset 0; V is [Hkv][page_tokens][Dv]; the scales of K and V are
 * [Hkv][page_tokens][D or Dv / 16, rounded up]. Each part begins at a multiple of 64 bytes. */
struct xm_kv_page {
    uint64_t v, k_scale, v_scale, bytes;
};
/* Computes the layout from d's heads_kv, d, dv, page_tokens and cache types. False: a size exceeds
 * 64 bits. */
bool xm_attention_page(const struct xm_attention_desc *d, struct xm_kv_page *out);
/* Returns whether rows of a cache of this type are rotated (Walsh-Hadamard) and have scales: i8,
 * u4. */
bool xm_attention_rotates(enum xm_element cache);
/* Returns the bytes of a row of n elements in a cache of this type, its scales included. */
uint64_t xm_attention_row_bytes(enum xm_element cache, uint32_t n);
/* The sequences of a run, which xm_primitive_plan and struct xm_run take: host copies of the
 * operands PAST_LENS [S] and SUBSEQUENCE_BEGINS [S+1], and the layer's slabs [XM_KV_SLABS], NULL
 * for those that do not exist. A plan needs no slabs. A plan for some `past_lens` suffices for all
 * smaller ones, so it may be made for the most positions that will come. */
struct xm_attention_run {
    uint32_t n_sequences;
    const int32_t *past_lens, *subsequence_begins;
    struct xm_buffer *const *slabs;
};
/* Returns the class of problems for measured rows: numbers and sizes of heads, and types. */
struct xm_problem_class xm_attention_class(const struct xm_attention_desc *d);
const char *xm_attention_supports(const struct xm_device_info *device,
                                  const struct xm_attention_desc *desc);
enum xm_status xm_attention_create(struct xm_engine *engine,
                                   const struct xm_attention_desc *desc,
                                   struct xm_primitive **out, struct xm_error *err);
/* Returns whether its kernels write operand PREPARED, for at most XM_FEW_TOKENS rows (b, t). */
bool xm_attention_emits(const struct xm_primitive *attention);
/* Enqueues a copy of the page that page word `from` denotes to that of `to` (beam search, shared
 * prefixes). XM_INVALID: a word denotes no page. */
enum xm_status xm_attention_copy_page(struct xm_buffer *const *slabs,
                                      const struct xm_kv_page *page, int32_t from,
                                      int32_t to, struct xm_queue *queue,
                                      struct xm_error *err);
/* Reads the bytes of the page that a page word denotes into out[page->bytes]; waits. */
enum xm_status xm_attention_read_page(struct xm_buffer *const *slabs,
                                      const struct xm_kv_page *page, int32_t word,
                                      uint8_t *out, struct xm_queue *queue,
                                      struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
