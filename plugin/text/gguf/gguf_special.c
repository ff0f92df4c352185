/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "plugin/text/gguf/gguf_parts.h"
#include "runtime/util/json.h"

static const char tokens_key[] = "tokenizer.ggml.tokens";

bool
xm_gguf_has(const struct xm_gguf *g, const char *key)
{
    return xm_gguf_find_key(g, key) != NULL;
}

enum xm_status
xm_gguf_need(const struct xm_gguf *g, const char *key, struct xm_error *err)
{
    return xm_gguf_has(g, key)
               ? XM_OK
               : xm_fail(err, XM_INVALID,
                         "key '%s' is missing, which the tokenizer needs", key);
}

bool
xm_gguf_is_no_tokenizer(struct xm_slice model)
{
    return xm_slice_equal(model, xm_slice_of("none", 4)) ||
           xm_slice_equal(model, xm_slice_of("no_vocab", 8));
}

enum xm_status
xm_gguf_bool_or(const struct xm_gguf *g, const char *key, bool *out, struct xm_error *err)
{
    return xm_gguf_has(g, key) ? xm_gguf_bool(g, key, out, err) : XM_OK;
}

enum xm_status
xm_gguf_tokens(const struct xm_gguf *g, struct xm_gguf_values *out, struct xm_error *err)
{
    XM_TRY(xm_gguf_need(g, tokens_key, err));
    XM_TRY(xm_gguf_list(g, tokens_key, out, err));
    if (out->element != XM_STRING)
        return xm_fail(err, XM_INVALID,
                       "key '%s': expected texts, found values of type %s", tokens_key,
                       xm_gguf_element_text(out->element));
    if (out->n == 0 || out->n > XM_MAX_TOKENS)
        return xm_fail(err, XM_INVALID,
                       "key '%s': expected 1 to %d texts, found %" PRIu64, tokens_key,
                       XM_MAX_TOKENS, out->n);
    return XM_OK;
}

/* clang-format off */
#define AT(member) offsetof(struct xm_gguf_special, member)
static const struct {
    const char *key;
    size_t offset;
    /* a wrong value is ignored: some files have one, and nothing here needs it */
    bool may_be_wrong;
} ids[] = {
    { "tokenizer.ggml.bos_token_id",     AT(bos), false },
    { "tokenizer.ggml.eos_token_id",     AT(eos), false },
    { "tokenizer.ggml.unknown_token_id", AT(unk), false },
    { "tokenizer.ggml.eot_token_id",     AT(eot), false },
    { "tokenizer.ggml.eom_token_id",     AT(eom), false },
    { "tokenizer.ggml.padding_token_id", AT(pad), true  },
    { "tokenizer.ggml.cls_token_id",     AT(cls), false },
    { "tokenizer.ggml.seperator_token_id", AT(sep), false }, /* files spell it this way */
};
#undef AT
/* clang-format on */

static enum xm_status
load_id(const struct xm_gguf *g, const char *key, bool may_be_wrong, uint64_t n_tokens,
        int32_t *out, struct xm_error *err)
{
    int64_t id = 0;
    if (!xm_gguf_has(g, key))
        return XM_OK;
    XM_TRY(xm_gguf_i64(g, key, &id, err));
    if (id >= 0 && (uint64_t)id < n_tokens)
        *out = (int32_t)id;
    else if (!may_be_wrong)
        return xm_fail(err, XM_INVALID,
                       "key '%s': expected the id of one of %" PRIu64
                       " tokens, found %" PRId64,
                       key, n_tokens, id);
    return XM_OK;
}

enum xm_status
xm_gguf_find_special(const struct xm_gguf *g, struct xm_gguf_special *out,
                     struct xm_error *err)
{
    struct xm_gguf_values tokens = {0};
    struct xm_slice model = {0};
    *out = (struct xm_gguf_special){-1, -1, -1, -1, -1, -1, -1, -1};
    XM_TRY(xm_gguf_need(g, "tokenizer.ggml.model", err));
    XM_TRY(xm_gguf_text(g, "tokenizer.ggml.model", &model, err));
    if (!xm_gguf_is_no_tokenizer(model))
        XM_TRY(xm_gguf_tokens(g, &tokens, err));
    /* SentencePiece's default ids, which old files leave out. */
    if (xm_slice_equal(model, xm_slice_of("llama", 5)) && tokens.n > 2) {
        out->unk = 0;
        out->bos = 1;
        out->eos = 2;
    }
    for (size_t i = 0; i < XM_ARRAY_LEN(ids); i++)
        XM_TRY(load_id(g, ids[i].key, ids[i].may_be_wrong,
                       tokens.n ? tokens.n : (uint64_t)XM_MAX_TOKENS,
                       (int32_t *)(void *)((char *)out + ids[i].offset), err));
    return XM_OK;
}
