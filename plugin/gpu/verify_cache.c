/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/verify_cache.h"

#include <string.h>

#include "plugin/gpu/request_run.h"
#include "runtime/reference/reference.h"

/* The KV cache of a step's layer during a run, as the host reads it. */
struct cache {
    const struct xm_request *request;
    const struct xm_kv_layer *layer;
    struct xm_buffer *slabs[XM_KV_SLABS];
    struct xm_attention_run run;
    struct xm_kv_page page;
    uint64_t page_tokens;
    int32_t *words, *begins; /* BLOCK_INDICES, BLOCK_INDICES_BEGINS */
    uint8_t *bytes;          /* the bytes of the page read last     */
};

/* The tensor of a state, [sequences, positions, heads, n], and the place of its rows in a page. */
struct state {
    enum xm_element stored;
    struct xm_tensor *t;
    uint64_t values, scales;
};

static enum xm_status
read_list(struct cache *c, const struct xm_operand *o, int32_t **out,
          struct xm_error *err)
{
    *out = xm_calloc(xm_operand_elements(o) + 1, sizeof(**out));
    return *out ? xm_queue_read(c->request->queue, o->buffer, 0, *out,
                                xm_operand_elements(o) * sizeof(**out), err)
                : xm_no_memory(err, "the tables of the KV cache");
}

static enum xm_status
open_cache(struct cache *c, struct xm_request *r, const struct xm_step *step,
           struct xm_error *err)
{
    const struct xm_kv_layer *layer = &r->program->kv[step->layer];
    const struct xm_attention_desc desc = {.heads_kv = layer->heads,
                                           .d = layer->d,
                                           .dv = layer->dv,
                                           .page_tokens =
                                               r->program->config.kv_block_tokens,
                                           .k_cache = layer->k_element,
                                           .v_cache = layer->v_element};
    struct xm_operand o[XM_ATTENTION_N_OPERANDS] = {{0}};
    *c = (struct cache){.request = r,
                        .layer = layer,
                        .page_tokens = desc.page_tokens,
                        .run = *xm_kv_tables_run(r->tables)};
    xm_request_operands(r, step, o);
    xm_kv_pool_slabs(r->program->kv_pool, step->layer, c->slabs);
    if (!xm_attention_page(&desc, &c->page))
        return xm_fail(err, XM_INVALID, "the size of a page of the KV cache overflows");
    c->bytes = xm_malloc(c->page.bytes);
    if (!c->bytes)
        return xm_no_memory(err, "a page of the KV cache");
    XM_TRY(read_list(c, &o[XM_ATTENTION_BLOCK_INDICES], &c->words, err));
    return read_list(c, &o[XM_ATTENTION_BLOCK_INDICES_BEGINS], &c->begins, err);
}

static void
close_cache(struct cache *c)
{
    xm_free(c->words);
    xm_free(c->begins);
    xm_free(c->bytes);
}

/* Returns the first position of a sequence that one of the run's tokens sees. */
static uint64_t
first_seen(const struct cache *c, uint64_t past)
{
    const uint64_t window = c->layer->window;
    return window && past + 1 > window ? past + 1 - window : 0;
}

/* Decodes the rows of all heads of a position from c->bytes, the bytes of its page. */
static void
unpack_position(const struct cache *c, const struct state *s, uint64_t sequence,
                uint64_t position)
{
    const uint64_t n = (uint64_t)s->t->dim[3], heads = c->layer->heads;
    const uint64_t width = n * xm_element_bits(s->stored) / 8,
                   scales = xm_attention_row_bytes(s->stored, (uint32_t)n) - width;
    float *out = s->t->f + (sequence * (uint64_t)s->t->dim[1] + position) * heads * n;
    for (uint64_t h = 0; h < heads; h++) {
        const uint64_t row = h * c->page_tokens + position % c->page_tokens;
        xm_ref_cached_row(s->stored, c->bytes + s->values + row * width,
                          c->bytes + s->scales + row * scales, n, out + h * n);
    }
}

static enum xm_status
unpack_sequence(struct cache *c, const struct state s[2], uint64_t sequence,
                struct xm_error *err)
{
    const uint64_t first = first_seen(c, (uint64_t)c->run.past_lens[sequence]);
    for (uint64_t j = first; j < (uint64_t)s->t->dim[1]; j++) {
        if (j == first || j % c->page_tokens == 0)
            XM_TRY(xm_attention_read_page(
                c->slabs, &c->page,
                c->words[c->begins[sequence] + (int64_t)(j / c->page_tokens)], c->bytes,
                c->request->queue, err));
        unpack_position(c, &s[0], sequence, j);
        unpack_position(c, &s[1], sequence, j);
    }
    return XM_OK;
}

static enum xm_status
copy_of(const struct xm_tensor *t, struct xm_tensor **out, struct xm_error *err)
{
    XM_TRY(xm_tensor_create(out, t->element, t->rank, t->dim, err));
    memcpy((*out)->f, t->f, t->n * sizeof(*t->f));
    return XM_OK;
}

/* Returns whether the cache has as many sequences and positions as the reference's states. */
static bool
agrees(const struct cache *c, const struct xm_tensor *k, const struct xm_tensor *v)
{
    bool all = k && v && k->rank == 4 && v->rank == 4 &&
               k->dim[0] == c->run.n_sequences && v->dim[0] == k->dim[0] &&
               v->dim[1] == k->dim[1];
    for (uint32_t s = 0; all && s < c->run.n_sequences; s++) {
        const int32_t *begin = c->run.subsequence_begins + s;
        all = k->dim[1] == (int64_t)c->run.past_lens[s] + begin[1] - begin[0];
    }
    return all;
}

static enum xm_status
unpack(struct cache *c, const struct xm_state_store *reference, struct xm_tensor *out[2],
       struct xm_error *err)
{
    const struct xm_kv_layer *l = c->layer;
    const struct xm_tensor *k = xm_state_get(reference, l->key_state),
                           *v = xm_state_get(reference, l->value_state);
    if (!agrees(c, k, v))
        return xm_fail(err, XM_INVALID,
                       "the KV cache and the reference hold different positions");
    XM_TRY(copy_of(k, &out[0], err));
    XM_TRY(copy_of(v, &out[1], err));
    const struct state s[] = {{l->k_element, out[0], 0, c->page.k_scale},
                              {l->v_element, out[1], c->page.v, c->page.v_scale}};
    for (uint64_t i = 0; i < c->run.n_sequences; i++)
        XM_TRY(unpack_sequence(c, s, i, err));
    return XM_OK;
}

enum xm_status
xm_verify_cache(struct xm_request *r, const struct xm_step *step,
                const struct xm_state_store *reference, struct xm_tensor *out[2],
                struct xm_error *err)
{
    struct cache c;
    enum xm_status s = open_cache(&c, r, step, err);
    if (s == XM_OK)
        s = unpack(&c, reference, out, err);
    close_cache(&c);
    return s;
}
