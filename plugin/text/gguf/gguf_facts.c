/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "plugin/text/gguf/gguf_parts.h"
#include "runtime/util/utf8.h"

enum { MAX_NAMES = 3 };

/* clang-format off */
#define AT(member) offsetof(struct xm_hyper_parameters, member)
static const struct {
    size_t offset;
    /* names behind "<architecture>."; the first one present is used */
    const char *names[MAX_NAMES];
} rows[] = {
    { AT(context),      { "context_length" } },
    { AT(layers),       { "block_count" } },
    { AT(hidden),       { "embedding_length" } },
    { AT(heads),        { "attention.head_count" } },
    { AT(kv_heads),     { "attention.head_count_kv" } },
    { AT(head_size),    { "attention.key_length_mla", "attention.key_length_swa", "attention.key_length" } },
    { AT(vocabulary),   { "vocab_size" } },
    { AT(experts),      { "expert_count" } },
    { AT(top_k),        { "expert_used_count" } },
    { AT(expert_width), { "expert_feed_forward_length" } },
    { AT(window),       { "attention.sliding_window" } },
};
#undef AT
/* clang-format on */

/* Returns a key's value or, of a list with one value for each layer, the largest; 0: none. */
static uint32_t
largest(const struct xm_gguf_key *k)
{
    uint32_t most = 0, x = 0;
    for (uint64_t i = 0; i < k->value.n; i++)
        if (xm_gguf_u32_at(&k->value, i, &x, NULL) == XM_OK && x > most && x <= INT32_MAX)
            most = x;
    return most;
}

static uint32_t
number_of(const struct xm_gguf *g, struct xm_slice architecture, const char *name)
{
    struct xm_strbuf key = {0};
    xm_strbuf_add_n(&key, architecture.text, architecture.n);
    xm_strbuf_printf(&key, ".%s", name);
    const struct xm_gguf_key *k = xm_gguf_find_key(g, xm_strbuf_text(&key));
    xm_strbuf_free(&key);
    return k ? largest(k) : 0;
}

void
xm_gguf_facts(const struct xm_gguf *g, struct xm_hyper_parameters *out)
{
    struct xm_slice architecture = {0};
    struct xm_gguf_values tokens;
    *out = (struct xm_hyper_parameters){0};
    if (xm_gguf_text(g, "general.architecture", &architecture, NULL) != XM_OK)
        return;
    xm_utf8_show(architecture, out->model_type, sizeof(out->model_type));
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        uint32_t *number = (uint32_t *)(void *)((char *)out + rows[i].offset);
        for (size_t k = 0; k < MAX_NAMES && rows[i].names[k] && *number == 0; k++)
            *number = number_of(g, architecture, rows[i].names[k]);
    }
    const uint32_t n_nextn = number_of(g, architecture, "nextn_predict_layers");
    if (n_nextn < out->layers) /* layers that predict further tokens are not run */
        out->layers -= n_nextn;
    /* With latent attention the file's number of KV heads may be 1, because one latent is cached;
     * all heads are expanded from it. */
    if (number_of(g, architecture, "attention.kv_lora_rank"))
        out->kv_heads = out->heads;
    if (out->vocabulary == 0 && xm_gguf_tokens(g, &tokens, NULL) == XM_OK)
        out->vocabulary = (uint32_t)tokens.n;
}
