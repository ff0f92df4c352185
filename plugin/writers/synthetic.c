/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/writers/synthetic.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "plugin/writers/openvino_ir_write.h"
#include "plugin/writers/synth.h"
#include "transformations/graph/symbols.h"

void
xm_synthetic_init(struct xm_synthetic *m)
{
    *m = (struct xm_synthetic){.hidden = 256,
                               .layers = 2,
                               .experts = 16,
                               .top_k = 4,
                               .moe_intermediate = 256,
                               .heads = 8,
                               .kv_heads = 2,
                               .head_dim = 64,
                               .vocabulary = 1024,
                               .weights = XM_U4,
                               .group = 64,
                               .seed = 1};
}

static uint64_t
weight_bytes(const struct xm_synthetic *m, uint64_t elements)
{
    uint64_t groups = m->weights == XM_F16 ? 0 : elements / (m->group ? m->group : 32);
    return elements * xm_element_bits(m->weights) / 8 + 3 * groups;
}

uint64_t
xm_synthetic_bytes(const struct xm_synthetic *m)
{
    uint64_t attention = 2ull * m->hidden * m->head_dim * (m->heads + m->kv_heads);
    uint64_t experts = 3ull * m->experts * m->hidden * m->moe_intermediate;
    uint64_t router = (uint64_t)m->experts * m->hidden;
    uint64_t head = 2ull * m->vocabulary * (m->hidden + 3);
    return m->layers * weight_bytes(m, attention + experts + router) + head;
}

enum xm_status
xm_synthetic_check(const struct xm_synthetic *m, struct xm_error *err)
{
    uint32_t rows[] = {m->hidden, m->moe_intermediate, m->heads * m->head_dim};
    if (!m->hidden || !m->layers || !m->experts || !m->moe_intermediate || !m->heads ||
        !m->kv_heads || !m->head_dim || m->vocabulary < 258)
        return xm_fail(
            err, XM_INVALID,
            "every dimension must be at least 1, and the vocabulary at least 258");
    if (m->top_k == 0 || m->top_k > m->experts)
        return xm_fail(err, XM_INVALID, "top-k is %u, expected 1 to %u (the experts)",
                       m->top_k, m->experts);
    if (m->heads % m->kv_heads || m->head_dim % 2)
        return xm_fail(
            err, XM_INVALID,
            "%u heads are not a multiple of %u KV heads, or head size %u is odd",
            m->heads, m->kv_heads, m->head_dim);
    for (size_t i = 0; m->group && i < XM_ARRAY_LEN(rows); i++) {
        if (rows[i] % m->group)
            return xm_fail(
                err, XM_INVALID,
                "groups of %u do not divide rows of %u columns (hidden, expert width "
                "and heads * head size must be multiples)",
                m->group, rows[i]);
    }
    switch (m->weights) {
    case XM_U4:
    case XM_I4:
    case XM_U8:
    case XM_I8:
    case XM_F16:
        return XM_OK;
    default:
        return xm_fail(err, XM_INVALID,
                       "weights of type %s, expected u4, i4, u8, i8 or f16",
                       xm_element_text(m->weights));
    }
}

/* ---- the graph ---- */

static struct xm_value *
input(struct xm_synth *s, const char *name, enum xm_element e, const char *second)
{
    struct xm_type type = {.element = e, .shape.rank = second ? 2 : 1};
    struct xm_dim_pool *dims = &s->g->dims;
    type.shape.dim[0] = xm_dim_symbol(dims, XM_SYMBOL_BATCH);
    if (second)
        type.shape.dim[1] = xm_dim_symbol(dims, XM_SYMBOL_TOKENS);
    if (second && strcmp(second, "all") == 0)
        type.shape.dim[1] =
            xm_dim_add(dims, xm_dim_symbol(dims, XM_SYMBOL_PAST), type.shape.dim[1]);
    struct xm_value *v = xm_parameter(&s->b, name, &type);
    const char **names = v ? xm_arena_alloc(&s->g->arena, sizeof(*names)) : NULL;
    if (!names)
        return NULL;
    names[0] = name;
    v->names = names;
    v->n_names = 1;
    v->node->name = name;
    return v;
}

/* cos and sin of position * frequency, [B,1,T,D]. */
static bool
make_rotary(struct xm_synth *s, struct xm_synth_inputs *in)
{
    uint32_t half = s->m->head_dim / 2;
    uint64_t n_bytes = half * sizeof(float);
    uint8_t *frequencies = xm_bin_file_take(&s->bin, n_bytes, 64, s->err);
    if (!frequencies)
        return false;
    for (uint32_t i = 0; i < half; i++)
        xm_store_float(XM_F32, frequencies, i,
                       powf(1e6f, -2.0f * (float)i / (float)s->m->head_dim));
    const struct xm_type column = {
        XM_F32, {3, {xm_dim_const(1), xm_dim_const(half), xm_dim_const(1)}}};
    struct xm_value *f = xm_const(&s->b, &column, (struct xm_data){frequencies, n_bytes});
    struct xm_value *axis = xm_synth_int(s, XM_I64, 1);
    struct xm_value *positions =
        xm_convert(&s->b, xm_op2(&s->b, XM_OP_UNSQUEEZE, in->positions, axis), XM_F32);
    const int64_t order[3] = {0, 2, 1};
    struct xm_value *angle =
        xm_op2(&s->b, XM_OP_TRANSPOSE, xm_matmul(&s->b, f, positions, false, false),
               xm_synth_ints(s, XM_I32, 3, order));
    struct xm_value *twice[2] = {angle, angle};
    const union xm_attr last = {.axis = {-1}};
    struct xm_value *angles = xm_synth_op(s, XM_OP_CONCAT, &last, twice, 2);
    in->cos = xm_op2(&s->b, XM_OP_UNSQUEEZE, xm_op1(&s->b, XM_OP_COS, angles), axis);
    in->sin = xm_op2(&s->b, XM_OP_UNSQUEEZE, xm_op1(&s->b, XM_OP_SIN, angles), axis);
    return in->cos && in->sin;
}

static struct xm_value *
embed(struct xm_synth *s, struct xm_synth_inputs *in)
{
    const union xm_attr i64 = {.convert = {XM_I64}};
    struct xm_value *shape = xm_synth_op(s, XM_OP_SHAPE_OF, &i64, &in->ids, 1);
    const int64_t zero = 0;
    struct xm_value *batch[3] = {shape, xm_synth_ints(s, XM_I64, 1, &zero),
                                 xm_synth_int(s, XM_I64, 0)};
    in->batch = xm_synth_op(s, XM_OP_GATHER, NULL, batch, 3);
    struct xm_value *table[3] = {
        xm_synth_weight(s, "embed_tokens", 0, s->m->vocabulary, s->m->hidden, XM_U8, 0),
        xm_convert(&s->b, in->ids, XM_I32), xm_synth_int(s, XM_I32, 0)};
    return xm_synth_op(s, XM_OP_GATHER, NULL, table, 3);
}

static struct xm_value *
decoder_layer(struct xm_synth *s, struct xm_synth_inputs *in, uint32_t layer,
              struct xm_value *x)
{
    struct xm_value *normed = xm_synth_norm(s, x, s->m->hidden);
    x = xm_op2(&s->b, XM_OP_ADD, x, xm_synth_attention(s, in, layer, normed));
    normed = xm_synth_norm(s, x, s->m->hidden);
    return xm_op2(&s->b, XM_OP_ADD, x, xm_synth_moe(s, in, layer, normed));
}

static bool
build(struct xm_synth *s)
{
    struct xm_synth_inputs in = {.ids = input(s, "input_ids", XM_I64, XM_SYMBOL_TOKENS),
                                 .mask = input(s, "attention_mask", XM_I64, "all"),
                                 .positions =
                                     input(s, "position_ids", XM_I64, XM_SYMBOL_TOKENS),
                                 .beams = input(s, "beam_idx", XM_I32, NULL)};
    if (!in.ids || !in.mask || !in.positions || !in.beams || !make_rotary(s, &in))
        return false;
    struct xm_value *x = embed(s, &in);
    for (uint32_t layer = 0; layer < s->m->layers; layer++)
        x = decoder_layer(s, &in, layer, x);
    x = xm_synth_norm(s, x, s->m->hidden);
    struct xm_value *head =
        xm_synth_weight(s, "lm_head", 0, s->m->vocabulary, s->m->hidden, XM_U8, 0);
    struct xm_value *logits = xm_matmul(&s->b, x, head, false, true);
    static const char *const names[] = {"logits"};
    if (!logits)
        return false;
    logits->names = names;
    logits->n_names = 1;
    return xm_result(&s->b, "logits", logits) != NULL;
}

/* ---- the files beside the model ---- */

static enum xm_status
write_text(const char *folder, const char *name, const struct xm_strbuf *text,
           struct xm_error *err)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    bool ok =
        f && xm_strbuf_ok(text) && fwrite(xm_strbuf_text(text), 1, text->n, f) == text->n;
    if (f)
        ok = fclose(f) == 0 && ok;
    return ok ? XM_OK
              : xm_fail(err, XM_IO, "cannot write '%s': %s", path, strerror(errno));
}

/* The character that byte-level BPE writes for a byte. */
static uint32_t
byte_character(uint32_t byte)
{
    bool printable =
        (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    uint32_t n = 256;
    if (printable)
        return byte;
    for (uint32_t b = 0; b < byte; b++)
        n += !((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174);
    return n;
}

/* Bytes, then names of their own: byte-level BPE without merges. */
static void
print_tokenizer(const struct xm_synthetic *m, struct xm_strbuf *out)
{
    xm_strbuf_printf(
        out, "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":256,\"content\":"
             "\"<|endoftext|>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
             "\"normalized\":false,\"special\":true}],\"normalizer\":null,"
             "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
             "\"trim_offsets\":true,\"use_regex\":true},\"post_processor\":null,"
             "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
             "\"trim_offsets\":true,\"use_regex\":true},\"model\":{\"type\":\"BPE\","
             "\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
             "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,"
             "\"ignore_merges\":false,\"vocab\":{");
    for (uint32_t i = 0; i < 256; i++)
        xm_strbuf_printf(out, "\"\\u%04x\":%u,", byte_character(i), i);
    xm_strbuf_add(out, "\"<|endoftext|>\":256");
    for (uint32_t i = 257; i < m->vocabulary; i++)
        xm_strbuf_printf(out, ",\"word%u\":%u", i, i);
    xm_strbuf_add(out, "},\"merges\":[]}}\n");
}

static void
print_config(const struct xm_synthetic *m, struct xm_strbuf *out)
{
    xm_strbuf_printf(
        out,
        "{\"model_type\":\"synthetic_moe\",\"hidden_size\":%u,"
        "\"num_hidden_layers\":%u,\"num_experts\":%u,\"num_experts_per_tok\":%u,"
        "\"moe_intermediate_size\":%u,\"num_attention_heads\":%u,"
        "\"num_key_value_heads\":%u,\"head_dim\":%u,\"vocab_size\":%u,"
        "\"eos_token_id\":256}\n",
        m->hidden, m->layers, m->experts, m->top_k, m->moe_intermediate, m->heads,
        m->kv_heads, m->head_dim, m->vocabulary);
}

static enum xm_status
write_side_files(const struct xm_synthetic *m, const char *folder, struct xm_error *err)
{
    struct xm_strbuf tokenizer = {0}, config = {0}, generation = {0};
    print_tokenizer(m, &tokenizer);
    print_config(m, &config);
    xm_strbuf_add(&generation, "{\"eos_token_id\":256}\n");
    enum xm_status s = write_text(folder, "tokenizer.json", &tokenizer, err);
    if (s == XM_OK)
        s = write_text(folder, "config.json", &config, err);
    if (s == XM_OK)
        s = write_text(folder, "generation_config.json", &generation, err);
    xm_strbuf_free(&tokenizer);
    xm_strbuf_free(&config);
    xm_strbuf_free(&generation);
    return s;
}

/* ---- the model ---- */

enum { BIN, XML, N_FILES, PATH = 512 }; /* in this order they get their names */

struct paths {
    char part[N_FILES][PATH], whole[N_FILES][PATH];
};

static enum xm_status
find_paths(struct paths *p, const char *folder, struct xm_error *err)
{
    static const char *const endings[N_FILES] = {"bin", "xml"};
    for (int i = 0; i < N_FILES; i++) {
        snprintf(p->whole[i], PATH, "%s/openvino_model.%s", folder, endings[i]);
        int n = snprintf(p->part[i], PATH, "%s/openvino_model.%s" XM_SYNTHETIC_PART,
                         folder, endings[i]);
        if (n < 0 || n >= PATH)
            return xm_fail(err, XM_INVALID, "the folder's path is too long");
    }
    return XM_OK;
}

static enum xm_status
write_parts(struct xm_synth *s, const struct paths *p)
{
    uint64_t slack =
        64ull * 1024 * (s->m->layers + 16) + 64ull * s->m->layers * s->m->hidden;
    XM_TRY(xm_bin_file_create(&s->bin, p->part[BIN], 2 * s->all_bytes + slack, s->err));
    s->bin.sparse = s->m->blank;
    enum xm_status status = XM_OK;
    if (!build(s))
        status =
            xm_fail(s->err, s->g->err.status ? s->g->err.status : XM_NO_MEMORY, "%s",
                    s->g->err.status ? s->g->err.text : "out of memory for the model");
    if (status == XM_OK)
        status = xm_openvino_ir_write(s->g, p->part[XML], &s->bin, s->err);
    enum xm_status closed = xm_bin_file_close(&s->bin, s->err);
    return status == XM_OK ? closed : status;
}

static enum xm_status
write_model(struct xm_synth *s, const char *folder)
{
    struct paths p;
    XM_TRY(find_paths(&p, folder, s->err));
    enum xm_status status = write_parts(s, &p);
    for (int i = 0; i < N_FILES && status == XM_OK; i++) {
        if (rename(p.part[i], p.whole[i]) != 0)
            status = xm_fail(s->err, XM_IO, "cannot rename '%s': %s", p.part[i],
                             strerror(errno));
    }
    for (int i = 0; i < N_FILES && status != XM_OK; i++)
        remove(p.part[i]);
    return status;
}

enum xm_status
xm_synthetic_write(const struct xm_synthetic *m, const char *folder,
                   void (*progress)(uint64_t done, uint64_t all, void *ctx), void *ctx,
                   struct xm_error *err)
{
    struct xm_synth s = {.m = m,
                         .random = (m->seed + 1) * 0x9e3779b97f4a7c15ull,
                         .all_bytes = xm_synthetic_bytes(m),
                         .progress = progress,
                         .ctx = ctx,
                         .err = err};
    s.random = s.random ? s.random : 1;
    XM_TRY(xm_synthetic_check(m, err));
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return xm_fail(err, XM_IO, "cannot create folder '%s': %s", folder,
                       strerror(errno));
    s.g = xm_graph_create("synthetic");
    if (!s.g)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for a graph");
    s.b = xm_builder_at_end(s.g);
    enum xm_status status = write_model(&s, folder);
    xm_graph_destroy(s.g);
    return status == XM_OK ? write_side_files(m, folder, err) : status;
}
