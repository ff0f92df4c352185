/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "plugin/text/gguf/gguf_parts.h"

enum { NORMAL = 1, USER_DEFINED = 4 }; /* values of tokenizer.ggml.token_type */

/* Fails unless a list has one value for each token. */
static enum xm_status
check_length(const struct xm_gguf_values *l, const char *key, uint64_t n_tokens,
             struct xm_error *err)
{
    return l->n == n_tokens ? XM_OK
                            : xm_fail(err, XM_INVALID,
                                      "key '%s': expected a value for each of %" PRIu64
                                      " tokens, found %" PRIu64,
                                      key, n_tokens, l->n);
}

enum xm_status
xm_gguf_load_unigram(const struct xm_gguf *g, int32_t unk, struct xm_tokenizer *t,
                     struct xm_error *err)
{
    static const char scores_key[] = "tokenizer.ggml.scores";
    static const char types_key[] = "tokenizer.ggml.token_type";
    struct xm_gguf_values tokens, scores, types;
    const bool has_types = xm_gguf_has(g, types_key);
    XM_TRY(xm_gguf_tokens(g, &tokens, err));
    XM_TRY(xm_gguf_need(g, scores_key, err));
    XM_TRY(xm_gguf_list(g, scores_key, &scores, err));
    XM_TRY(check_length(&scores, scores_key, tokens.n, err));
    if (has_types) {
        XM_TRY(xm_gguf_list(g, types_key, &types, err));
        XM_TRY(check_length(&types, types_key, tokens.n, err));
    }
    XM_TRY(xm_unigram_reserve(&t->unigram, &t->vocab, (size_t)tokens.n, err));
    for (uint64_t i = 0; i < tokens.n; i++) {
        uint32_t type = NORMAL;
        float score = 0;
        if (has_types)
            XM_TRY(xm_gguf_u32_at(&types, i, &type, err));
        XM_TRY(xm_gguf_f32_at(&scores, i, &score, err));
        if ((type == NORMAL || type == USER_DEFINED) &&
            xm_vocab_get(&t->vocab, (int32_t)i))
            xm_unigram_add(&t->unigram, (int32_t)i, (double)score);
    }
    if (t->unigram.n == 0)
        return xm_fail(err, XM_INVALID,
                       "key '%s': no token is a normal or user-defined piece", types_key);
    xm_unigram_finish(&t->unigram, unk, true);
    return XM_OK;
}

enum xm_status
xm_gguf_load_charsmap(const struct xm_gguf *g, struct xm_tokenizer *t,
                      struct xm_error *err)
{
    static const char key[] = "tokenizer.ggml.precompiled_charsmap";
    struct xm_gguf_values values;
    struct xm_charsmap *map = NULL;
    if (!xm_gguf_has(g, key))
        return XM_OK;
    XM_TRY(xm_gguf_list(g, key, &values, err));
    if (values.n == 0)
        return XM_OK;
    if (values.element != XM_I8 && values.element != XM_U8)
        return xm_fail(err, XM_INVALID,
                       "key '%s': expected bytes, found values of type %s", key,
                       xm_gguf_element_text(values.element));
    XM_TRY(xm_charsmap_create_of(values.bytes.p, (size_t)values.n, &map, err));
    return xm_normalizer_add_map(&t->normalizer, map, err);
}
