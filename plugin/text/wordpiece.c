/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/wordpiece.h"

#include <string.h>

#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

enum xm_status
xm_wordpiece_load(yyjson_val *model, struct xm_vocab *vocab, struct xm_wordpiece *out,
                  struct xm_error *err)
{
    struct xm_slice unk = {"[UNK]", 5}, inner = {"##", 2};
    *out = (struct xm_wordpiece){.vocab = vocab, .most = XM_WORDPIECE_DEFAULT};
    XM_TRY(xm_json_text(model, "unk_token", &unk, err));
    XM_TRY(xm_json_text(model, "continuing_subword_prefix", &inner, err));
    XM_TRY(xm_json_count(model, "max_input_chars_per_word", &out->most, err));
    if (out->most > XM_WORDPIECE_MOST)
        return xm_fail(err, XM_UNSUPPORTED,
                       "'max_input_chars_per_word' is %u, at most %d is supported",
                       out->most, XM_WORDPIECE_MOST);
    const char *copy = xm_arena_strndup(&vocab->arena, inner.text, inner.n);
    if (!copy)
        return xm_no_memory(err, "'continuing_subword_prefix'");
    out->inner = xm_slice_of(copy, inner.n);
    XM_TRY(xm_vocab_load(model, vocab, err));
    out->unk = xm_vocab_find_in_model(vocab, unk);
    return XM_OK;
}

/* Finds the end of each character of a word. False: the word has more than `most`. */
static bool
find_ends(struct xm_slice word, size_t most, uint32_t ends[XM_WORDPIECE_MOST], size_t *n)
{
    *n = 0;
    for (size_t at = 0; at < word.n; (*n)++) {
        int32_t code;
        if (*n == most)
            return false;
        at += xm_utf8_next(xm_slice_of(word.text + at, word.n - at), &code);
        ends[*n] = (uint32_t)at;
    }
    return true;
}

/* Returns the longest piece that begins at character `from`; *next: the character behind it. */
static int32_t
longest(const struct xm_wordpiece *m, struct xm_slice word, const uint32_t *ends,
        size_t n, size_t from, struct xm_strbuf *scratch, size_t *next)
{
    const size_t start = from ? ends[from - 1] : 0;
    xm_strbuf_clear(scratch);
    const struct xm_slice prefix = from ? m->inner : m->first;
    xm_strbuf_add_n(scratch, prefix.text, prefix.n);
    const size_t mark = scratch->n;
    xm_strbuf_add_n(scratch, word.text + start, word.n - start);
    for (size_t to = n; xm_strbuf_ok(scratch) && to > from; to--) {
        const struct xm_slice text = {xm_strbuf_text(scratch),
                                      mark + ends[to - 1] - start};
        const int32_t id = xm_vocab_find_ordinary(m->vocab, text);
        *next = to;
        if (id != XM_NO_TOKEN)
            return id;
    }
    return XM_NO_TOKEN;
}

enum xm_status
xm_wordpiece_encode(const struct xm_wordpiece *model, struct xm_slice word,
                    struct xm_strbuf *scratch, struct xm_token_list *out,
                    struct xm_error *err)
{
    uint32_t ends[XM_WORDPIECE_MOST];
    const size_t before = out->n;
    size_t n;
    bool is_known = find_ends(word, model->most, ends, &n);
    for (size_t at = 0; is_known && at < n;) {
        const int32_t id = longest(model, word, ends, n, at, scratch, &at);
        if (!xm_strbuf_ok(scratch))
            return xm_no_memory(err, "the pieces of a word");
        is_known = id != XM_NO_TOKEN;
        if (is_known && !xm_token_list_add(out, id))
            return xm_no_memory(err, "the pieces of a word");
    }
    if (is_known)
        return XM_OK;
    out->n = before;
    if (model->unk == XM_NO_TOKEN)
        return xm_fail(err, XM_INVALID,
                       "'%s' has parts that are not in the vocabulary, which has no "
                       "unknown token",
                       xm_utf8_shown(word).text);
    return xm_token_list_add(out, model->unk) ? XM_OK
                                              : xm_no_memory(err, "the pieces of a word");
}
