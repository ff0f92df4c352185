/* SPDX-License-Identifier: Apache-2.0
 *
 * The pieces are sorted by their bytes, so those with a common prefix are neighbours: a range that
 * shrinks with every byte finds all pieces that begin at a position, without a tree.
 */
#include "plugin/text/unigram.h"

#include <stdlib.h>

#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

static const double unknown_penalty = 10.0; /* subtracted from the lowest score */

/* The best way to cut the word up to some position. */
struct xm_unigram_end {
    double score;
    size_t start; /* start of the last token */
    int32_t id;   /* id of the last token */
    bool reached;
};

/* ---- loading ----------------------------------------------------------------------- */

static int
compare_pieces(const void *a, const void *b)
{
    const struct xm_slice *x = &((const struct xm_unigram_piece *)a)->text;
    const struct xm_slice *y = &((const struct xm_unigram_piece *)b)->text;
    size_t n = x->n < y->n ? x->n : y->n;
    int order = n > 0 ? memcmp(x->text, y->text, n) : 0;
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

/* Drops pieces whose text a later piece has, too, as the reference does. */
static void
drop_repeated(struct xm_unigram *u)
{
    size_t n = 0;
    for (size_t i = 0; i < u->n; i++)
        if (xm_vocab_find(u->vocab, u->pieces[i].text) == u->pieces[i].id)
            u->pieces[n++] = u->pieces[i];
    u->n = n;
}

enum xm_status
xm_unigram_reserve(struct xm_unigram *unigram, const struct xm_vocab *vocab, size_t n,
                   struct xm_error *err)
{
    unigram->vocab = vocab;
    unigram->pieces = xm_calloc(n, sizeof(*unigram->pieces));
    return unigram->pieces ? XM_OK : xm_no_memory(err, "%zu pieces", n);
}

void
xm_unigram_add(struct xm_unigram *unigram, int32_t id, double score)
{
    unigram->pieces[unigram->n++] =
        (struct xm_unigram_piece){xm_vocab_get(unigram->vocab, id)->text, score, id};
}

void
xm_unigram_finish(struct xm_unigram *unigram, int32_t unk, bool byte_fallback)
{
    unigram->unk = unk;
    unigram->byte_fallback = byte_fallback;
    xm_vocab_find_bytes(unigram->vocab, unigram->byte_ids);
    for (size_t i = 0; i < unigram->n; i++)
        if (i == 0 || unigram->pieces[i].score < unigram->unk_score)
            unigram->unk_score = unigram->pieces[i].score;
    unigram->unk_score -= unknown_penalty;
    drop_repeated(unigram);
    qsort(unigram->pieces, unigram->n, sizeof(*unigram->pieces), compare_pieces);
}

static enum xm_status
add_piece(struct xm_unigram *u, struct xm_vocab *vocab, yyjson_val *value,
          struct xm_error *err)
{
    yyjson_val *text = yyjson_arr_get(value, 0), *score = yyjson_arr_get(value, 1);
    int32_t id = (int32_t)u->n;
    if (!yyjson_is_str(text) || !yyjson_is_num(score))
        return xm_fail(err, XM_INVALID, "piece %d is not [\"text\", score]", id);
    XM_TRY(xm_vocab_add_repeatable(
        vocab, xm_slice_of(yyjson_get_str(text), yyjson_get_len(text)), id,
        XM_REPEAT_FINDS_LAST, err));
    xm_unigram_add(u, id, yyjson_get_num(score));
    return XM_OK;
}

static enum xm_status
load_pieces(yyjson_val *model, struct xm_unigram *u, struct xm_vocab *vocab,
            struct xm_error *err)
{
    yyjson_val *list, *value;
    size_t i, n;
    XM_TRY(xm_json_array(model, "vocab", &list, err));
    n = yyjson_arr_size(list);
    if (n == 0 || n >= XM_MAX_TOKENS)
        return xm_fail(err, XM_INVALID, "there are %zu pieces, expected 1 to %d", n,
                       XM_MAX_TOKENS - 1);
    XM_TRY(xm_unigram_reserve(u, vocab, n, err));
    yyjson_arr_foreach(list, i, n, value)
    {
        XM_TRY(add_piece(u, vocab, value, err));
    }
    return XM_OK;
}

static enum xm_status
load_unknown(yyjson_val *model, struct xm_unigram *u, struct xm_error *err)
{
    yyjson_val *value = yyjson_obj_get(model, "unk_id");
    int32_t unk = XM_NO_TOKEN;
    bool byte_fallback = false;
    if (value && !yyjson_is_null(value))
        XM_TRY(xm_json_token_id(value, "unk_id", &unk, err));
    if (unk != XM_NO_TOKEN && (size_t)unk >= u->n)
        return xm_fail(err, XM_INVALID, "'unk_id' is %d, but there are %zu pieces", unk,
                       u->n);
    XM_TRY(xm_json_bool(model, "byte_fallback", &byte_fallback, err));
    xm_unigram_finish(u, unk, byte_fallback);
    return XM_OK;
}

enum xm_status
xm_unigram_load(yyjson_val *model, struct xm_vocab *vocab, struct xm_unigram *out,
                struct xm_error *err)
{
    XM_TRY(load_pieces(model, out, vocab, err));
    return load_unknown(model, out, err);
}

void
xm_unigram_free(struct xm_unigram *unigram)
{
    xm_free(unigram->pieces);
    *unigram = (struct xm_unigram){0};
}

/* ---- the best cut ------------------------------------------------------------------ */

/* Returns the first piece of [first, last) whose byte `at` is at least `byte`. All pieces of the
 * range agree in the bytes before, and have a byte `at`. */
static size_t
lower_bound(const struct xm_unigram *u, size_t first, size_t last, size_t at, int byte)
{
    while (first < last) {
        size_t middle = first + (last - first) / 2;
        if ((uint8_t)u->pieces[middle].text.text[at] < byte)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

static void
reach(struct xm_unigram_end *end, double score, size_t start, int32_t id)
{
    if (!end->reached || score > end->score)
        *end = (struct xm_unigram_end){score, start, id, true};
}

/* Updates the ends of all pieces that begin at `start`, and of an unknown character. */
static void
try_pieces(const struct xm_unigram *u, struct xm_slice word, size_t start,
           struct xm_unigram_end *ends)
{
    size_t first = 0, last = u->n, character;
    double score = ends[start].score;
    int32_t code;
    bool known = false;
    character = xm_utf8_next(xm_slice_of(word.text + start, word.n - start), &code);
    for (size_t at = 0; first < last && start + at < word.n; at++) {
        int byte = (uint8_t)word.text[start + at];
        if (u->pieces[first].text.n == at) /* the piece that ends here is sorted first */
            first++;
        first = lower_bound(u, first, last, at, byte);
        last = lower_bound(u, first, last, at, byte + 1);
        const struct xm_unigram_piece *p = &u->pieces[first];
        if (first == last || p->text.n != at + 1 || u->vocab->entries[p->id].special)
            continue;
        reach(&ends[start + at + 1], score + p->score, start, p->id);
        known = known || at + 1 == character;
    }
    if (!known)
        reach(&ends[start + character], score + u->unk_score, start, u->unk);
}

static bool
find_best(const struct xm_unigram *u, struct xm_slice word, struct xm_unigram_work *work)
{
    struct xm_unigram_end *ends =
        xm_grow(work->ends, &work->capacity, word.n + 1, sizeof(*ends));
    int32_t code;
    if (!ends)
        return false;
    work->ends = ends;
    for (size_t i = 0; i <= word.n; i++)
        ends[i] = (struct xm_unigram_end){0};
    for (size_t i = 0; i < word.n;) {
        try_pieces(u, word, i, ends);
        i += xm_utf8_next(xm_slice_of(word.text + i, word.n - i), &code);
    }
    return true;
}

/* ---- tokens ------------------------------------------------------------------------ */

/* Appends the tokens of a run of unknown characters. Byte tokens are appended from the last to the
 * first, because the ids are in reverse order. */
static enum xm_status
add_unknown(const struct xm_unigram *u, struct xm_slice run, struct xm_token_list *out,
            struct xm_error *err)
{
    int32_t whole = xm_vocab_find_ordinary(u->vocab, run);
    bool bytes = whole == XM_NO_TOKEN && u->byte_fallback, ok = true;
    for (size_t i = 0; bytes && i < run.n; i++)
        bytes = u->byte_ids[(uint8_t)run.text[i]] != XM_NO_TOKEN;
    for (size_t i = run.n; bytes && ok && i-- > 0;)
        ok = xm_token_list_add(out, u->byte_ids[(uint8_t)run.text[i]]);
    if (!bytes && whole == XM_NO_TOKEN)
        whole = u->unk;
    if (!bytes && whole == XM_NO_TOKEN)
        return xm_fail(err, XM_INVALID,
                       "'%s' is not in the vocabulary, which has no unknown token",
                       xm_utf8_shown(run).text);
    if (!bytes)
        ok = xm_token_list_add(out, whole);
    return ok ? XM_OK : xm_no_memory(err, "%zu bytes", run.n);
}

/* Collects the ids of the best cut, from the end of the word to its beginning. */
static enum xm_status
collect(const struct xm_unigram *u, struct xm_slice word, struct xm_unigram_work *work,
        struct xm_error *err)
{
    const struct xm_unigram_end *ends = work->ends;
    xm_token_list_clear(&work->ids);
    for (size_t end = word.n; end > 0;) {
        size_t start = ends[end].start;
        if (ends[end].id != u->unk) {
            if (!xm_token_list_add(&work->ids, ends[end].id))
                return xm_no_memory(err, "%zu tokens", work->ids.n);
        } else {
            while (start > 0 && ends[start].id == u->unk)
                start = ends[start].start;
            XM_TRY(add_unknown(u, xm_slice_of(word.text + start, end - start), &work->ids,
                               err));
        }
        end = start;
    }
    return XM_OK;
}

enum xm_status
xm_unigram_encode(const struct xm_unigram *unigram, struct xm_slice word,
                  struct xm_unigram_work *work, struct xm_token_list *out,
                  struct xm_error *err)
{
    bool ok = find_best(unigram, word, work);
    if (ok)
        XM_TRY(collect(unigram, word, work, err));
    for (size_t i = work->ids.n; ok && i-- > 0;)
        ok = xm_token_list_add(out, work->ids.ids[i]);
    if (!ok)
        return xm_no_memory(err, "a word of %zu bytes", word.n);
    return XM_OK;
}

void
xm_unigram_work_free(struct xm_unigram_work *work)
{
    xm_free(work->ends);
    xm_token_list_free(&work->ids);
    *work = (struct xm_unigram_work){0};
}
