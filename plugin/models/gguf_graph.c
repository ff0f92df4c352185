/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights stay in the mapped file: blocks are never expanded, and no byte is copied. Exceptions are
 * the rows of projections whose rotary pairs are neighbours, which are reordered, and the keys of
 * latent attention, which are transposed.
 */
#include "plugin/models/gguf_graph.h"

#include <inttypes.h>
#include <string.h>

#include "plugin/models/metadata.h"

struct source {
    const struct xm_gguf *g;
    const struct xm_decoder *d;
};

/* ---- tensors ------------------------------------------------------------------------- */

static void
print_dims(const uint64_t *dim, uint32_t n, struct xm_strbuf *out)
{
    for (uint32_t i = 0; i < n; i++)
        xm_strbuf_printf(out, "%s%" PRIu64, i ? "," : "[", dim[i]);
    xm_strbuf_add(out, "]");
}

/* Fails unless the file's dimensions are those that the decoder expects; leading dimensions of 1
 * are ignored. */
static enum xm_status
check_dims(const struct xm_gguf_tensor *found, const uint64_t *expected, uint32_t rank,
           struct xm_error *err)
{
    uint64_t dim[XM_GGUF_MAX_RANK];
    uint32_t skip = 0;
    xm_gguf_tensor_dims(found, dim);
    while (found->rank - skip > rank && dim[skip] == 1)
        skip++;
    bool is_same = found->rank - skip == rank;
    for (uint32_t i = 0; i < rank && is_same; i++)
        is_same = dim[skip + i] == expected[i];
    if (is_same)
        return XM_OK;
    struct xm_strbuf a = {0}, b = {0};
    print_dims(expected, rank, &a);
    print_dims(dim, found->rank, &b);
    xm_fail(err, XM_INVALID, "tensor '%.*s': expected %s, found %s", (int)found->name.n,
            found->name.text, xm_strbuf_text(&a), xm_strbuf_text(&b));
    xm_strbuf_free(&a);
    xm_strbuf_free(&b);
    return XM_INVALID;
}

/* Finds a tensor of the expected sizes, as a weight. */
static enum xm_status
find_weight(const struct source *s, enum xm_decoder_tensor t, uint32_t layer,
            struct xm_weight *out, struct xm_error *err)
{
    uint64_t dim[3];
    char name[64];
    xm_decoder_tensor_name(t, layer, name);
    xm_decoder_dims(s->d, t, layer, dim);
    const struct xm_gguf_tensor *found = xm_gguf_find_tensor(s->g, name);
    if (!found)
        return xm_fail(err, XM_INVALID, "there is no tensor '%s'", name);
    XM_TRY(check_dims(found, dim, xm_tensor_infos[t].rank, err));
    XM_TRY(xm_gguf_weight(found, out, err));
    out->rank = xm_tensor_infos[t].rank;
    return XM_OK;
}

/* ---- neighbours become halves --------------------------------------------------------- */

/* The layout of a projection's rows: each head has `head` rows, of which the n from `first` on are
 * rotated. */
struct rotated_rows {
    uint64_t head, first, n;
};

static struct rotated_rows
rotated_rows(const struct xm_decoder *d, enum xm_decoder_tensor t, uint32_t layer)
{
    const struct xm_decoder_attention *a = &d->attention[d->layer[layer].kind];
    if (t == XM_TENSOR_ATTN_KV_A)
        return (struct rotated_rows){(uint64_t)d->kv_rank + a->rope_dim, d->kv_rank,
                                     a->rope_dim};
    return (struct rotated_rows){
        a->head_dim, d->traits & XM_TRAIT_LATENT ? a->head_dim - a->rope_dim : 0,
        a->rope_dim};
}

/* Returns the row of the file that becomes row i, so that pairs are (i, i + n/2). */
static uint64_t
row_of_file(uint64_t i, const struct rotated_rows *r)
{
    const uint64_t head = i / r->head * r->head, first = head + r->first;
    const uint64_t half = r->n / 2;
    if (i < first || i >= first + r->n)
        return i;
    i -= first;
    return first + (i < half ? 2 * i : 2 * (i - half) + 1);
}

/* Reorders the weight's rows within each head: a copy in the arena. */
static enum xm_status
reorder_rows(const struct source *s, struct xm_graph *g, enum xm_decoder_tensor t,
             uint32_t layer, struct xm_weight *w, struct xm_error *err)
{
    const struct rotated_rows rows = rotated_rows(s->d, t, layer);
    const uint64_t n = w->rank == 1 ? w->cols : w->rows, row_bytes = w->data.n / n;
    if (w->rank == 1 && xm_weight_is_blocks(w))
        return xm_fail(
            err, XM_UNSUPPORTED,
            "layer %" PRIu32
            ": a bias of rotated columns has a block format, which is not supported",
            layer);
    uint8_t *copy = xm_arena_alloc(&g->arena, (size_t)w->data.n);
    if (!copy)
        return xm_no_memory(err, "a projection's rows");
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t from = row_of_file(i, &rows);
        memcpy(copy + i * row_bytes, w->data.p + from * row_bytes, (size_t)row_bytes);
    }
    w->data.p = copy;
    return XM_OK;
}

static bool
has_pairs_of_neighbours(const struct xm_decoder *d, enum xm_decoder_tensor t)
{
    return (d->traits & XM_TRAIT_ROPE_NEIGHBOURS) &&
           (t == XM_TENSOR_ATTN_Q || t == XM_TENSOR_ATTN_K || t == XM_TENSOR_ATTN_Q_B ||
            t == XM_TENSOR_ATTN_KV_A || t == XM_TENSOR_ATTN_Q_BIAS ||
            t == XM_TENSOR_ATTN_K_BIAS);
}

/* ---- matrices of heads become one ------------------------------------------------------ */

static void
stack_heads(struct xm_weight *w)
{
    w->rows *= w->experts;
    w->experts = 1;
    w->rank = 2;
}

/* Transposes each head's matrix. The numbers of a block share a scale along columns, so the result
 * is converted to floats, in the arena. */
static enum xm_status
transpose_heads(struct xm_graph *g, struct xm_weight *w, struct xm_error *err)
{
    uint64_t n = 0, bytes = 0;
    const bool is_size = xm_mul_size(w->experts * w->rows, w->cols, &n) &&
                         xm_mul_size(n + w->cols, sizeof(float), &bytes);
    float *out = is_size ? xm_arena_alloc(&g->arena, (size_t)bytes) : NULL;
    if (!out)
        return xm_no_memory(err, "the keys of a latent");
    float *row = out + n;
    for (uint64_t i = 0; i < w->experts * w->rows; i++) {
        const uint64_t head = i / w->rows, at = i % w->rows;
        xm_weight_row(w, head, at, row);
        for (uint64_t k = 0; k < w->cols; k++)
            out[(head * w->cols + k) * w->rows + at] = row[k];
    }
    *w = (struct xm_weight){.format = XM_WEIGHT_ELEMENTS,
                            .element = XM_F32,
                            .rank = 2,
                            .experts = 1,
                            .rows = w->experts * w->cols,
                            .cols = w->rows,
                            .data = {(const uint8_t *)out, n * sizeof(float)}};
    return XM_OK;
}

/* Drops the mapped pages of bytes that have been copied, so that they do not use memory in addition
 * to the copy. */
static void
forget(const struct source *s, const struct xm_bytes *copied)
{
    for (uint64_t i = 0; i < s->g->n_parts; i++) {
        struct xm_mapping *m = s->g->parts[i].mapping;
        if (m && m->forget)
            m->forget(m, copied->p, copied->n);
    }
}

/* Converts a weight to the form that the graph needs: reorders rows of neighbouring rotary pairs,
 * makes one matrix of a latent's heads. */
static enum xm_status
arrange(const struct source *s, struct xm_graph *g, enum xm_decoder_tensor t,
        uint32_t layer, struct xm_weight *w, struct xm_error *err)
{
    const struct xm_bytes of_file = w->data;
    if (has_pairs_of_neighbours(s->d, t))
        XM_TRY(reorder_rows(s, g, t, layer, w, err));
    if (t == XM_TENSOR_ATTN_K_B)
        XM_TRY(transpose_heads(g, w, err));
    if (t == XM_TENSOR_ATTN_V_B)
        stack_heads(w);
    if (w->data.p != of_file.p)
        forget(s, &of_file);
    return XM_OK;
}

/* ---- as values ------------------------------------------------------------------------ */

/* Makes a constant of a norm, bias or scale, in f32: [n], or [n0,1,n1]. */
static struct xm_value *
vector(struct xm_builder *b, const struct xm_weight *w)
{
    struct xm_type type = {.element = XM_F32,
                           .shape = {1, {xm_dim_const((int64_t)w->cols)}}};
    uint64_t n = 0, bytes = 0;
    if (!xm_mul_size(w->rows, w->cols, &n) || !xm_mul_size(n, sizeof(float), &bytes))
        return NULL;
    if (w->rank == 2)
        type.shape = (struct xm_shape){3,
                                       {xm_dim_const((int64_t)w->rows), xm_dim_const(1),
                                        xm_dim_const((int64_t)w->cols)}};
    if (w->element == XM_F32 && !xm_weight_is_blocks(w))
        return xm_const(b, &type, (struct xm_data){w->data.p, bytes});
    float *out = xm_arena_alloc(&b->graph->arena, (size_t)bytes);
    if (!out)
        return NULL;
    for (uint64_t i = 0; i < w->rows; i++)
        xm_weight_row(w, 0, i, out + i * w->cols);
    return xm_const(b, &type, (struct xm_data){(const uint8_t *)out, bytes});
}

/* Finds gate or up of experts that have both in one tensor. */
static enum xm_status
find_half(const struct source *s, enum xm_decoder_tensor t, uint32_t layer,
          struct xm_weight *out, struct xm_error *err)
{
    const uint64_t width = s->d->expert_ffn;
    XM_TRY(find_weight(s, XM_TENSOR_GATE_UP_EXPS, layer, out, err));
    const char *wrong =
        xm_weight_slice_rows(out, t == XM_TENSOR_UP_EXPS ? width : 0, width);
    return wrong ? xm_fail(err, XM_INVALID, "gate and up of layer %" PRIu32 ": %s", layer,
                           wrong)
                 : XM_OK;
}

static bool
is_half_of_one(const struct source *s, enum xm_decoder_tensor t, uint32_t layer)
{
    char name[64];
    xm_decoder_tensor_name(t, layer, name);
    return (t == XM_TENSOR_GATE_EXPS || t == XM_TENSOR_UP_EXPS) &&
           !xm_gguf_find_tensor(s->g, name);
}

static enum xm_status
find_in_file(const struct source *s, enum xm_decoder_tensor t, uint32_t layer,
             struct xm_weight *out, struct xm_error *err)
{
    return is_half_of_one(s, t, layer) ? find_half(s, t, layer, out, err)
                                       : find_weight(s, t, layer, out, err);
}

/* Adds the number by which llama.cpp multiplies products with the matrix, or the numbers of the
 * experts, to the weight. */
static enum xm_status
add_factor(const struct source *s, enum xm_decoder_tensor t, uint32_t layer,
           struct xm_weight *w, struct xm_error *err)
{
    struct xm_weight factor;
    const struct xm_gguf_tensor *found = xm_metadata_find_factor(
        s->g, s->d, is_half_of_one(s, t, layer) ? XM_TENSOR_GATE_UP_EXPS : t, layer);
    if (!found)
        return XM_OK;
    XM_TRY(check_dims(found, &w->experts, 1, err));
    XM_TRY(xm_gguf_weight(found, &factor, err));
    if (factor.format != XM_WEIGHT_ELEMENTS || factor.element != XM_F32)
        return xm_fail(err, XM_UNSUPPORTED, "tensor '%.*s': expected f32, found %s",
                       (int)found->name.n, found->name.text,
                       xm_weight_format_text(&factor));
    w->factor = factor.data;
    return XM_OK;
}

static struct xm_value *
get(void *ctx, struct xm_builder *b, enum xm_decoder_tensor t, uint32_t layer)
{
    const struct source *s = ctx;
    struct xm_error *err = &b->graph->err;
    struct xm_weight w;
    enum xm_status status = find_in_file(s, t, layer, &w, err);
    if (status == XM_OK)
        status = arrange(s, b->graph, t, layer, &w, err);
    if (status == XM_OK)
        status = add_factor(s, t, layer, &w, err);
    if (status != XM_OK)
        return NULL;
    return xm_tensor_infos[t].kind == XM_TENSOR_VECTOR ? vector(b, &w)
                                                       : xm_weight(b, &w, XM_F32);
}

/* ---- the graph ------------------------------------------------------------------------ */

/* Checks that every tensor has the sizes that follow from the keys, before these sizes are used. */
static enum xm_status
check_tensors(const struct source *s, struct xm_error *err)
{
    const struct xm_decoder *d = s->d;
    struct xm_weight w;
    for (uint32_t layer = 0; layer <= d->n_layers; layer++) {
        const uint64_t set = layer < d->n_layers ? d->layer[layer].tensors : d->tensors;
        for (int t = 0; t < XM_TENSORS; t++) {
            if (set >> t & 1)
                XM_TRY(find_in_file(s, (enum xm_decoder_tensor)t, layer, &w, err));
        }
    }
    return XM_OK;
}

static enum xm_status
fill(const struct xm_gguf *g, struct xm_graph *graph, struct xm_error *err)
{
    struct xm_decoder d;
    for (uint64_t i = 0; i < g->n_parts; i++) {
        if (g->parts[i].mapping)
            XM_TRY(xm_graph_add_mapping(graph, g->parts[i].mapping));
    }
    XM_TRY(xm_metadata_read(g, &graph->arena, &d, err));
    struct source s = {g, &d};
    XM_TRY(check_tensors(&s, err));
    const struct xm_decoder_weights weights = {&s, get};
    return xm_decoder_build(&d, &weights, XM_EXPERTS_EXPORTER, graph, err);
}

enum xm_status
xm_gguf_graph(const struct xm_gguf *g, const char *path, struct xm_graph **out,
              struct xm_error *err)
{
    struct xm_error why = {0};
    struct xm_graph *graph = xm_graph_create("gguf");
    *out = NULL;
    if (!graph)
        return xm_no_memory(err, "a graph");
    enum xm_status status = fill(g, graph, &why);
    if (status == XM_OK) {
        *out = graph;
        return XM_OK;
    }
    xm_graph_destroy(graph);
    return xm_fail(err, status, "%.150s: %s", path, why.text);
}
