/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of one sequence, with a cache of one slab in which all bytes are equal. The byte is
 * chosen so that it makes no denormal number in any cache type, because processors multiply those
 * very slowly.
 */
#include <inttypes.h>

#include "plugin/bench_kernels/bench.h"
#include "primitives/attention/attention.h"
#include "runtime/util/memory.h"

enum { PAGE_TOKENS = 32, CACHE_BYTE = 0x2c };

struct bench_attention {
    struct xm_engine *engine;
    struct xm_queue *queue;
    struct xm_primitive *primitive;
    struct xm_operand o[XM_ATTENTION_N_OPERANDS];
    struct xm_buffer *slabs[XM_KV_SLABS], *scratch;
    int32_t past, begins[2];
    struct xm_attention_run run;
};

static enum xm_status
add_operand(struct bench_attention *a, enum xm_attention_operand which,
            struct xm_operand shape, struct xm_error *err)
{
    const uint64_t bytes =
        xm_operand_elements(&shape) * xm_element_bits(shape.element) / 8;
    struct xm_operand *o = &a->o[which];
    *o = shape;
    XM_TRY(xm_buffer_create(a->engine, XM_USE_DEVICE, bytes, &o->buffer, err));
    return xm_queue_fill(a->queue, o->buffer, 0, CACHE_BYTE, bytes, err);
}

/* Makes a list of integers as an operand. */
static enum xm_status
add_list(struct bench_attention *a, enum xm_attention_operand which, const int32_t *list,
         uint64_t n, struct xm_error *err)
{
    const struct xm_operand shape = {NULL, XM_I32, 1, {(int64_t)n}};
    XM_TRY(add_operand(a, which, shape, err));
    return xm_queue_write(a->queue, a->o[which].buffer, 0, list, n * sizeof(*list), err);
}

static enum xm_status
add_operands(struct bench_attention *a, const struct xm_timed_problem *p,
             struct xm_error *err)
{
    const int64_t t = (int64_t)p->tokens, d = (int64_t)p->head;
    const struct xm_operand q = {NULL, p->activations, 4, {1, t, (int64_t)p->heads_q, d}};
    const struct xm_operand k = {
        NULL, p->activations, 4, {1, t, (int64_t)p->heads_kv, d}};
    XM_TRY(add_operand(a, XM_ATTENTION_Q, q, err));
    XM_TRY(add_operand(a, XM_ATTENTION_K, k, err));
    XM_TRY(add_operand(a, XM_ATTENTION_V, k, err));
    return add_operand(a, XM_ATTENTION_OUT, q, err);
}

static enum xm_status
add_slab(struct bench_attention *a, uint64_t bytes, struct xm_error *err)
{
    XM_TRY(xm_buffer_create(a->engine, XM_USE_DEVICE, bytes, &a->slabs[0], err));
    return xm_queue_fill(a->queue, a->slabs[0], 0, CACHE_BYTE, bytes, err);
}

/* Makes the page tables; the pages are in order. */
static enum xm_status
add_tables(struct bench_attention *a, uint64_t pages, struct xm_error *err)
{
    const int32_t block_begins[] = {0, (int32_t)pages};
    int32_t *words = xm_calloc(pages, sizeof(*words));
    if (!words)
        return xm_no_memory(err, "the numbers of %" PRIu64 " pages", pages);
    for (uint64_t i = 0; i < pages; i++)
        words[i] = (int32_t)i;
    enum xm_status s = add_list(a, XM_ATTENTION_BLOCK_INDICES, words, pages, err);
    xm_free(words);
    XM_TRY(s);
    XM_TRY(add_list(a, XM_ATTENTION_PAST_LENS, &a->past, 1, err));
    XM_TRY(add_list(a, XM_ATTENTION_SUBSEQUENCE_BEGINS, a->begins, 2, err));
    return add_list(a, XM_ATTENTION_BLOCK_INDICES_BEGINS, block_begins, 2, err);
}

static enum xm_status
fill(struct bench_attention *a, const struct xm_timed_problem *p, struct xm_error *err)
{
    const struct xm_attention_desc desc = {.heads_q = (uint32_t)p->heads_q,
                                           .heads_kv = (uint32_t)p->heads_kv,
                                           .d = (uint32_t)p->head,
                                           .dv = (uint32_t)p->head,
                                           .scale = 0.1f,
                                           .causal = true,
                                           .page_tokens = PAGE_TOKENS,
                                           .element = p->activations,
                                           .k_cache = p->weight,
                                           .v_cache = p->weight};
    const uint64_t pages = (p->past + p->tokens + PAGE_TOKENS - 1) / PAGE_TOKENS;
    struct xm_kv_page page;
    uint64_t bytes = 0;
    a->past = (int32_t)p->past;
    a->begins[1] = (int32_t)p->tokens;
    a->run = (struct xm_attention_run){1, &a->past, a->begins, a->slabs};
    if (!xm_attention_page(&desc, &page))
        return xm_fail(err, XM_INVALID, "a page of the KV cache is too large");
    XM_TRY(xm_attention_create(a->engine, &desc, &a->primitive, err));
    XM_TRY(add_operands(a, p, err));
    XM_TRY(add_slab(a, pages * page.bytes, err));
    XM_TRY(add_tables(a, pages, err));
    XM_TRY(xm_primitive_plan(a->primitive, a->o, &a->run, &bytes, err));
    return bytes ? xm_buffer_create(a->engine, XM_USE_DEVICE, bytes, &a->scratch, err)
                 : XM_OK;
}

enum xm_status
xm_bench_attention_create(struct xm_engine *engine, struct xm_queue *queue,
                          const struct xm_timed_problem *p, struct bench_attention **out,
                          struct xm_error *err)
{
    *out = xm_calloc(1, sizeof(**out));
    if (!*out)
        return xm_no_memory(err, "a problem");
    (*out)->engine = engine;
    (*out)->queue = queue;
    return fill(*out, p, err);
}

enum xm_status
xm_bench_attention_run(const struct bench_attention *a, struct xm_error *err)
{
    const struct xm_run run = {
        .queue = a->queue, .scratch = a->scratch, .sequences = &a->run};
    return xm_primitive_run(a->primitive, a->o, &run, err);
}

void
xm_bench_attention_describe(const struct bench_attention *a, char *out, size_t bytes)
{
    xm_primitive_describe(a->primitive, a->o, out, bytes);
}

void
xm_bench_attention_destroy(struct bench_attention *a)
{
    if (!a)
        return;
    xm_primitive_destroy(a->primitive);
    for (size_t i = 0; i < XM_ATTENTION_N_OPERANDS; i++)
        xm_buffer_unref(a->o[i].buffer);
    xm_buffer_unref(a->slabs[0]);
    xm_buffer_unref(a->scratch);
    xm_free(a);
}
