/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the decoder as a GGUF file: its keys, from the table that the reader uses, a byte-level
 * tokenizer, and its tensors.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "plugin/models/metadata.h"
#include "plugin/writers/synth.h"
#include "runtime/util/strbuf.h"

enum { VERSION = 3, ALIGNMENT = 32, NORMAL = 1, CONTROL = 3 };
/* Types of values, by their numbers in files. */
enum { U32 = 4, I32 = 5, F32 = 6, BOOL = 7, STRING = 8, ARRAY = 9 };

/* ---- how tensors are stored ------------------------------------------------------------ */

struct stored {
    enum xm_weight_format blocks; /* ELEMENTS: elements of type `element` */
    enum xm_element element;
};

/* Returns the format with smaller blocks that replaces a format whose blocks do not divide a
 * row. */
static enum xm_weight_format
smaller(enum xm_weight_format f)
{
    switch (f) {
    case XM_WEIGHT_Q2_K:
    case XM_WEIGHT_Q3_K:
    case XM_WEIGHT_IQ4_XS:
        return XM_WEIGHT_IQ4_NL;
    case XM_WEIGHT_Q4_K:
        return XM_WEIGHT_Q5_0;
    case XM_WEIGHT_Q5_K:
        return XM_WEIGHT_Q5_1;
    case XM_WEIGHT_Q6_K:
        return XM_WEIGHT_Q8_0;
    default:
        return XM_WEIGHT_ELEMENTS;
    }
}

static bool
is_experts(enum xm_decoder_tensor t)
{
    return xm_tensor_infos[t].rank == 3;
}

static struct stored
stored_as(const struct xm_synth *s, enum xm_decoder_tensor t, const uint64_t dim[3])
{
    const struct xm_tensor_info *info = &xm_tensor_infos[t];
    const bool is_table = info->kind == XM_TENSOR_TABLE || t == XM_TENSOR_OUTPUT;
    const uint64_t cols = dim[info->rank - 1];
    struct stored as = {s->m->blocks, s->m->element};
    if (info->kind == XM_TENSOR_VECTOR || t == XM_TENSOR_ROUTER)
        return (struct stored){XM_WEIGHT_ELEMENTS, XM_F32};
    if (as.blocks == XM_WEIGHT_ELEMENTS)
        return as;
    if (is_table || (as.blocks == XM_WEIGHT_MXFP4 && !is_experts(t)))
        as.blocks = XM_WEIGHT_Q8_0;
    while (as.blocks != XM_WEIGHT_ELEMENTS &&
           cols % xm_weight_formats[as.blocks].block_cols)
        as.blocks = smaller(as.blocks);
    as.element = XM_F16;
    return as;
}

static uint64_t
bytes_of(struct stored as, uint64_t n)
{
    const struct xm_weight_format_info *f = &xm_weight_formats[as.blocks];
    return as.blocks == XM_WEIGHT_ELEMENTS ? n * xm_element_bits(as.element) / 8
                                           : n / f->block_cols * f->block_bytes;
}

uint64_t
xm_synth_gguf_bytes(const struct xm_synth *s, enum xm_decoder_tensor t, uint32_t layer)
{
    uint64_t dim[3];
    xm_decoder_dims(&s->d, t, layer, dim);
    return xm_align_up(bytes_of(stored_as(s, t, dim), dim[0] * dim[1] * dim[2]),
                       ALIGNMENT);
}

static uint32_t
type_number(struct stored as)
{
    enum { LAST = 64 };
    const char *text = as.blocks == XM_WEIGHT_ELEMENTS
                           ? xm_element_text(as.element)
                           : xm_weight_formats[as.blocks].text;
    for (uint32_t i = 0; i < LAST; i++) {
        const struct xm_gguf_type *type = xm_gguf_find_type(i);
        if (type && strcmp(type->text, text) == 0)
            return i;
    }
    return LAST;
}

/* ---- header --------------------------------------------------------------------------- */

struct header {
    struct xm_strbuf text;
    const struct xm_decoder *d;
    uint64_t n_keys;
};

static void
put(struct header *h, const void *p, size_t n)
{
    xm_strbuf_add_n(&h->text, p, n);
}

static void
put_u32(struct header *h, uint32_t v)
{
    put(h, &v, sizeof(v));
}

static void
put_u64(struct header *h, uint64_t v)
{
    put(h, &v, sizeof(v));
}

static void
put_text(struct header *h, const char *text)
{
    put_u64(h, strlen(text));
    put(h, text, strlen(text));
}

static void
put_key(struct header *h, const char *key, uint32_t type)
{
    h->n_keys++;
    put_text(h, key);
    put_u32(h, type);
}

/* Writes the key "<architecture>.<name>". */
static void
put_own_key(struct header *h, const char *name, uint32_t type)
{
    char key[128];
    snprintf(key, sizeof(key), "%s.%s", h->d->arch->name, name);
    put_key(h, key, type);
}

static void
put_key_u32(struct header *h, const char *key, uint32_t v)
{
    put_key(h, key, U32);
    put_u32(h, v);
}

static void
put_key_text(struct header *h, const char *key, const char *text)
{
    put_key(h, key, STRING);
    put_text(h, text);
}

static void
put_bool(struct header *h, bool v)
{
    const uint8_t byte = v;
    put(h, &byte, 1);
}

static void
put_list(struct header *h, uint32_t type, uint64_t n)
{
    put_u32(h, type);
    put_u64(h, n);
}

static uint32_t
heads_of(const struct xm_decoder *d, uint32_t layer)
{
    return d->layer[layer].heads;
}

static uint32_t
kv_heads_of(const struct xm_decoder *d, uint32_t layer)
{
    return d->layer[layer].kv_heads;
}

/* Returns the width of a layer's feed-forward, of layers without a dense one that of an expert,
 * because some readers take an expert's width from this key. */
static uint32_t
width_of(const struct xm_decoder *d, uint32_t layer)
{
    return d->layer[layer].ffn ? d->layer[layer].ffn : d->expert_ffn;
}

/* Writes a key with a number for each layer: a single number if all are equal, else a list. */
static void
put_of_layers(struct header *h, const char *name,
              uint32_t (*number_of)(const struct xm_decoder *d, uint32_t layer))
{
    const struct xm_decoder *d = h->d;
    bool is_list = false;
    for (uint32_t i = 0; i < d->n_layers; i++)
        is_list |= number_of(d, i) != number_of(d, 0);
    put_own_key(h, name, is_list ? ARRAY : U32);
    if (is_list)
        put_list(h, U32, d->n_layers);
    for (uint32_t i = 0; i < (is_list ? d->n_layers : 1); i++)
        put_u32(h, number_of(d, i));
}

static void
put_numbers(struct header *h)
{
    for (const struct xm_metadata_key *k = xm_metadata_keys; k->key; k++) {
        const void *value = (const char *)h->d + k->offset;
        static const uint32_t zero = 0;
        if (memcmp(value, &zero, sizeof(zero)) == 0)
            continue;
        put_own_key(h, k->key, k->is_float ? F32 : U32);
        put(h, value, sizeof(uint32_t));
    }
}

static void
put_experts(struct header *h, const struct xm_synthetic *m)
{
    const struct xm_decoder *d = h->d;
    if (!d->experts)
        return;
    put_own_key(h, "expert_gating_func", U32);
    put_u32(h, d->gate);
    put_own_key(h, "expert_weights_norm", BOOL);
    put_bool(h, d->traits & XM_TRAIT_NORMALISED);
    if (d->shared_ffn) { /* the shared expert's width in multiples of an expert's */
        put_own_key(h, "expert_shared_count", U32);
        put_u32(h, d->shared_ffn % d->expert_ffn ? 1 : d->shared_ffn / d->expert_ffn);
    }
    put_own_key(h, "leading_dense_block_count", U32);
    put_u32(h, m->sizes.dense_layers);
}

static void
put_attention(struct header *h, const struct xm_synthetic *m)
{
    static const char *const scalings[] = {"none", "linear", "yarn"};
    const struct xm_decoder *d = h->d;
    put_of_layers(h, "attention.head_count", heads_of);
    put_of_layers(h, "attention.head_count_kv", kv_heads_of);
    put_of_layers(h, "feed_forward_length", width_of);
    /* readers need the key for architectures that can have these embeddings */
    if (d->ple == 0) {
        put_own_key(h, "embedding_length_per_layer_input", U32);
        put_u32(h, 0);
    }
    put_own_key(h, "rope.scaling.type", STRING);
    put_text(h, scalings[d->rope_scaling.kind]);
    put_own_key(h, "attention.shared_kv_layers", U32);
    put_u32(h, m->sizes.sharing);
    put_own_key(h, "attention.sliding_window_pattern", ARRAY);
    put_list(h, BOOL, d->n_layers);
    for (uint32_t i = 0; i < d->n_layers; i++)
        put_bool(h, d->layer[i].kind == XM_ATTENTION_SLIDING);
}

static void
put_character(uint32_t c, char text[8])
{
    const bool is_short = c < 0x80;
    text[0] = (char)(is_short ? c : 0xc0 | c >> 6);
    text[1] = (char)(is_short ? 0 : 0x80 | (c & 0x3f));
    text[2] = 0;
}

static void
put_tokenizer(struct header *h)
{
    const uint32_t n = h->d->vocabulary;
    char text[24];
    put_key_text(h, "tokenizer.ggml.model", "gpt2");
    put_key_text(h, "tokenizer.ggml.pre", "gpt-2");
    put_key(h, "tokenizer.ggml.tokens", ARRAY);
    put_list(h, STRING, n);
    for (uint32_t i = 0; i < n; i++) {
        if (i < XM_SYNTH_END)
            put_character(xm_synth_byte_character(i), text);
        else
            snprintf(text, sizeof(text),
                     i == XM_SYNTH_END ? "<|endoftext|>" : "word%" PRIu32, i);
        put_text(h, text);
    }
    put_key(h, "tokenizer.ggml.token_type", ARRAY);
    put_list(h, I32, n);
    for (uint32_t i = 0; i < n; i++)
        put_u32(h, i == XM_SYNTH_END ? CONTROL : NORMAL);
    put_key(h, "tokenizer.ggml.merges", ARRAY);
    put_list(h, STRING, 0);
    put_key_u32(h, "tokenizer.ggml.bos_token_id", XM_SYNTH_END);
    put_key_u32(h, "tokenizer.ggml.eos_token_id", XM_SYNTH_END);
    put_key(h, "tokenizer.ggml.add_bos_token", BOOL);
    put_bool(h, false);
}

/* ---- tensors -------------------------------------------------------------------------- */

static enum xm_status
count(struct xm_synth *s, void *ctx, enum xm_decoder_tensor t, uint32_t layer)
{
    (void)s;
    (void)t;
    (void)layer;
    ++*(uint64_t *)ctx;
    return XM_OK;
}

struct infos {
    struct header *h;
    uint64_t offset;
};

static enum xm_status
put_info(struct xm_synth *s, void *ctx, enum xm_decoder_tensor t, uint32_t layer)
{
    struct infos *i = ctx;
    const uint32_t rank = xm_tensor_infos[t].rank;
    uint64_t dim[3];
    char name[64];
    xm_decoder_tensor_name(t, layer, name);
    xm_decoder_dims(&s->d, t, layer, dim);
    put_text(i->h, name);
    put_u32(i->h, rank);
    for (uint32_t j = 0; j < rank; j++)
        put_u64(i->h, dim[rank - 1 - j]);
    put_u32(i->h, type_number(stored_as(s, t, dim)));
    put_u64(i->h, i->offset);
    i->offset += xm_synth_gguf_bytes(s, t, layer);
    return XM_OK;
}

static enum xm_status
write_data(struct xm_synth *s, void *ctx, enum xm_decoder_tensor t, uint32_t layer)
{
    const struct xm_tensor_info *info = &xm_tensor_infos[t];
    uint64_t dim[3];
    (void)ctx;
    xm_decoder_dims(&s->d, t, layer, dim);
    const struct stored as = stored_as(s, t, dim);
    const uint64_t n = dim[0] * dim[1] * dim[2], cols = dim[info->rank - 1];
    uint8_t *p =
        xm_bin_file_take(&s->bin, xm_synth_gguf_bytes(s, t, layer), ALIGNMENT, s->err);
    if (!p)
        return s->err->status;
    if (info->kind == XM_TENSOR_VECTOR)
        xm_synth_vector(s, t, n, (float *)(void *)p);
    else if (as.blocks == XM_WEIGHT_ELEMENTS)
        xm_synth_fill_floats(s, as.element, p, n, sqrtf(3.0f / (float)cols));
    else
        xm_synth_fill_blocks(s, as.blocks, p, n / cols, cols);
    return XM_OK;
}

/* ---- the file ------------------------------------------------------------------------- */

static void
put_header(struct xm_synth *s, struct header *keys, struct header *h)
{
    struct infos infos = {h, 0};
    uint64_t n_tensors = 0;
    put_key_text(keys, "general.architecture", s->d.arch->name);
    put_key_text(keys, "general.name", "synthetic");
    put_key_u32(keys, "general.quantization_version", 2);
    put_numbers(keys);
    put_attention(keys, s->m);
    put_experts(keys, s->m);
    put_tokenizer(keys);
    xm_synth_each_tensor(s, &n_tensors, count);
    put(h, "GGUF", 4);
    put_u32(h, VERSION);
    put_u64(h, n_tensors);
    put_u64(h, keys->n_keys);
    put(h, xm_strbuf_text(&keys->text), keys->text.n);
    xm_synth_each_tensor(s, &infos, put_info);
}

static enum xm_status
write_file(struct xm_synth *s, const struct xm_new_file *at)
{
    struct header keys = {.d = &s->d}, h = {.d = &s->d};
    enum xm_status status = XM_OK;
    put_header(s, &keys, &h);
    if (!xm_strbuf_ok(&keys.text) || !xm_strbuf_ok(&h.text))
        status = xm_no_memory(s->err, "a file's keys");
    if (status == XM_OK)
        status =
            xm_bin_file_create(&s->bin, at, s->all_bytes + h.text.n + ALIGNMENT, s->err);
    if (status == XM_OK) {
        s->bin.sparse = s->m->blank;
        uint8_t *p = xm_bin_file_take(&s->bin, h.text.n, 1, s->err);
        if (p)
            memcpy(p, xm_strbuf_text(&h.text), h.text.n);
        status = p ? xm_synth_each_tensor(s, NULL, write_data) : s->err->status;
        enum xm_status closed = xm_bin_file_close(&s->bin, s->err);
        status = status == XM_OK ? closed : status;
    }
    xm_strbuf_free(&keys.text);
    xm_strbuf_free(&h.text);
    return status;
}

/* Locks the folder, so that of two writers that begin at the same time the second sees the first:
 * each checks for other writers and begins its file while it holds the lock. Waits for the lock at
 * most one second and then continues without it: a holder that keeps it longer is writing an IR
 * there, or is another program. Returns the folder's descriptor, which holds the lock; -1: the
 * folder cannot be opened. */
static int
lock_turn(const char *path)
{
    enum { TRIES = 100, WAIT_MS = 10 };
    const struct timespec wait = {0, WAIT_MS * 1000000};
    const char *slash = strrchr(path, '/');
    struct xm_strbuf folder = {0};
    xm_strbuf_add_n(&folder, path, slash ? (size_t)(slash - path) + 1 : 0);
    xm_strbuf_add(&folder, ".");
    const int fd = xm_strbuf_ok(&folder)
                       ? open(xm_strbuf_text(&folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                       : -1;
    xm_strbuf_free(&folder);
    for (int i = 0; i < TRIES && fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; i++)
        nanosleep(&wait, NULL);
    return fd;
}

/* Begins the file. With --force, two writers may write at the same time, and the file of the last
 * one remains. */
static enum xm_status
begin_file(struct xm_synth *s, const char *path, bool is_in_locked_folder,
           struct xm_new_file *at)
{
    const int turn = is_in_locked_folder ? -1 : lock_turn(path);
    enum xm_status status = xm_synth_check_place(s, path);
    if (status == XM_OK && s->m->keeps && xm_new_file_has_writer(path))
        status = xm_fail(s->err, XM_IO, "another program is writing '%.300s'", path);
    if (status == XM_OK)
        status = xm_new_file_begin(at, path, s->err);
    if (turn >= 0)
        close(turn);
    return status;
}

enum xm_status
xm_synth_write_gguf(struct xm_synth *s, const char *path, bool is_in_locked_folder)
{
    struct xm_new_file at;
    XM_TRY(begin_file(s, path, is_in_locked_folder, &at));
    enum xm_status status = write_file(s, &at);
    if (status == XM_OK)
        status = xm_synth_check_place(s, path);
    return xm_new_file_end(&at, status, s->err);
}
