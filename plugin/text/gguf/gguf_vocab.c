/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads tokens, their types, merges and scores from the mapped file into a struct xm_tokenizer,
 * which does not depend on the file format.
 *
 * A token of the type "unused" only pads the model's matrix: no token gets its id. Tokens may have
 * equal texts: encoding uses the first of them.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "plugin/text/gguf/gguf_parts.h"

/* Values of tokenizer.ggml.token_type. */
enum { UNDEFINED, NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE, N_TYPES };

/* Reads an optional list that has one value for each token. *is_there: the file has it. */
static enum xm_status
find_beside(const struct xm_gguf *g, const char *key, uint64_t n_tokens,
            struct xm_gguf_values *out, bool *is_there, struct xm_error *err)
{
    *is_there = xm_gguf_has(g, key);
    if (!*is_there)
        return XM_OK;
    XM_TRY(xm_gguf_list(g, key, out, err));
    if (out->n != n_tokens)
        return xm_fail(err, XM_INVALID,
                       "key '%s': expected a value for each of %" PRIu64
                       " tokens, found %" PRIu64,
                       key, n_tokens, out->n);
    return XM_OK;
}

/* ---- tokens -------------------------------------------------------------------------- */

/* Adds a token that is searched for in texts before the model runs. */
static enum xm_status
add_found_first(struct xm_tokenizer *t, int32_t id, bool special, struct xm_error *err)
{
    struct xm_vocab_entry *entry = &t->vocab.entries[id];
    entry->special = special;
    const struct xm_added_token token = {
        .text = entry->text, .id = id, .special = special};
    return xm_added_tokens_add(&t->added, &token, err);
}

static enum xm_status
add_token(struct xm_tokenizer *t, struct xm_slice text, int32_t id, uint32_t type,
          bool own_are_special, struct xm_error *err)
{
    if (type >= N_TYPES)
        return xm_fail(err, XM_INVALID,
                       "expected a token type from 0 to %d, found %" PRIu32, N_TYPES - 1,
                       type);
    if (type == UNUSED || type == UNDEFINED || text.n == 0)
        return XM_OK;
    XM_TRY(xm_vocab_add_repeatable(&t->vocab, text, id, XM_REPEAT_FINDS_FIRST, err));
    if (type == UNKNOWN || type == CONTROL || type == USER_DEFINED)
        return add_found_first(t, id, type != USER_DEFINED || own_are_special, err);
    return XM_OK;
}

enum xm_status
xm_gguf_load_vocab(const struct xm_gguf *g, bool own_are_special, struct xm_tokenizer *t,
                   struct xm_error *err)
{
    struct xm_gguf_values tokens, types;
    bool has_types;
    XM_TRY(xm_gguf_tokens(g, &tokens, err));
    const uint64_t n = tokens.n;
    XM_TRY(find_beside(g, "tokenizer.ggml.token_type", n, &types, &has_types, err));
    for (uint64_t i = 0; i < n; i++) {
        struct xm_slice text = {0};
        uint32_t type = NORMAL;
        XM_TRY(xm_gguf_next_text(&tokens, &text, err));
        if (has_types)
            XM_TRY(xm_gguf_u32_at(&types, i, &type, err));
        const enum xm_status s =
            add_token(t, text, (int32_t)i, type, own_are_special, err);
        if (s != XM_OK) {
            xm_error_prefix(err, "token %" PRIu64, i);
            return s;
        }
    }
    xm_added_tokens_sort(&t->added);
    return XM_OK;
}

/* ---- merges -------------------------------------------------------------------------- */

/* Cuts a merge "a b" at its space. A part may begin with a space but has no other. */
static enum xm_status
cut_merge(struct xm_slice merge, struct xm_slice *left, struct xm_slice *right,
          struct xm_error *err)
{
    const char *space = merge.n > 1 ? memchr(merge.text + 1, ' ', merge.n - 1) : NULL;
    if (!space)
        return xm_fail(err, XM_INVALID, "expected two parts with a space between them");
    const size_t n = (size_t)(space - merge.text);
    *left = xm_slice_of(merge.text, n);
    *right = xm_slice_of(space + 1, merge.n - n - 1);
    return XM_OK;
}

enum xm_status
xm_gguf_load_merges(const struct xm_gguf *g, struct xm_bpe *bpe, struct xm_error *err)
{
    static const char key[] = "tokenizer.ggml.merges";
    struct xm_gguf_values merges;
    struct xm_strbuf joined = {0};
    enum xm_status s = XM_OK;
    XM_TRY(xm_gguf_need(g, key, err));
    XM_TRY(xm_gguf_list(g, key, &merges, err));
    if (merges.element != XM_STRING)
        return xm_fail(err, XM_INVALID,
                       "key '%s': expected texts, found values of type %s", key,
                       xm_gguf_element_text(merges.element));
    const uint64_t n = merges.n;
    for (uint64_t i = 0; s == XM_OK && i < n; i++) {
        struct xm_slice text = {0}, left = {0}, right = {0};
        s = xm_gguf_next_text(&merges, &text, err);
        if (s == XM_OK)
            s = cut_merge(text, &left, &right, err);
        if (s == XM_OK)
            s = xm_bpe_add_merge(bpe, left, right, (uint32_t)i, &joined, err);
        if (s != XM_OK)
            xm_error_prefix(err, "key '%s': merge %" PRIu64, key, i);
    }
    xm_strbuf_free(&joined);
    return s;
}

/* ---- scores -------------------------------------------------------------------------- */

struct scored {
    float score;
    uint32_t id;
};

static int
compare_scores(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

/* Sets ranks[id]: 0 for the best score; equal scores get equal ranks. */
static void
rank(struct scored *all, uint64_t n, uint32_t *ranks)
{
    uint32_t at = 0;
    qsort(all, (size_t)n, sizeof(*all), compare_scores);
    for (uint64_t i = 0; i < n; i++) {
        if (i > 0 && all[i].score < all[i - 1].score)
            at++;
        ranks[all[i].id] = at;
    }
}

static enum xm_status
read_scores(const struct xm_gguf_values *scores, struct scored *all, struct xm_error *err)
{
    for (uint64_t i = 0; i < scores->n; i++) {
        all[i].id = (uint32_t)i;
        XM_TRY(xm_gguf_f32_at(scores, i, &all[i].score, err));
    }
    return XM_OK;
}

static enum xm_status
rank_by_scores(const struct xm_gguf_values *scores, uint32_t *ranks, struct xm_error *err)
{
    struct scored *all = xm_malloc((size_t)scores->n * sizeof(*all));
    if (!all)
        return xm_no_memory(err, "%" PRIu64 " scores", scores->n);
    const enum xm_status s = read_scores(scores, all, err);
    if (s == XM_OK)
        rank(all, scores->n, ranks);
    xm_free(all);
    return s;
}

/* Without scores all tokens have the same rank, so the leftmost pair merges first. */
enum xm_status
xm_gguf_load_scores(const struct xm_gguf *g, struct xm_bpe *bpe, struct xm_error *err)
{
    struct xm_gguf_values tokens, scores;
    bool is_there;
    XM_TRY(xm_gguf_tokens(g, &tokens, err));
    XM_TRY(find_beside(g, "tokenizer.ggml.scores", tokens.n, &scores, &is_there, err));
    bpe->ranks = xm_calloc((size_t)tokens.n, sizeof(*bpe->ranks));
    if (!bpe->ranks)
        return xm_no_memory(err, "%" PRIu64 " ranks", tokens.n);
    return is_there ? rank_by_scores(&scores, bpe->ranks, err) : XM_OK;
}
