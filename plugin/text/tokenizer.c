/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/tokenizer.h"

#include "plugin/text/detokenizer.h"
#include "plugin/text/tokenizer_parts.h"
#include "runtime/util/utf8.h"

/* The state of one encode call. */
struct encoding {
    const struct xm_tokenizer *t;
    struct xm_token_list *ids;
    struct xm_strbuf repaired;        /* the text with ill-formed UTF-8 replaced */
    struct xm_strbuf normal;          /* normalized text of one section */
    struct xm_strbuf prefix, marks;   /* scratch and marks of `normal`: map_marks() */
    struct xm_pieces pieces, scratch; /* pieces of one section */
    struct xm_bpe_work work;
    struct xm_unigram_work unigram_work;
    struct xm_strbuf piece; /* scratch of WordPiece */
    struct xm_error *err;
};

static enum xm_status
add_id(struct encoding *e, int32_t id)
{
    if (!xm_token_list_add(e->ids, id))
        return xm_no_memory(e->err, "%zu tokens", e->ids->n);
    return XM_OK;
}

static enum xm_status
encode_word(struct encoding *e, struct xm_slice word)
{
    if (e->t->wordpiece.vocab)
        return xm_wordpiece_encode(&e->t->wordpiece, word, &e->piece, e->ids, e->err);
    if (e->t->unigram.n > 0)
        return xm_unigram_encode(&e->t->unigram, word, &e->unigram_work, e->ids, e->err);
    return xm_bpe_encode(&e->t->bpe, word, &e->work, e->ids, e->err);
}

/* Encodes normalized text that contains no added tokens. */
static enum xm_status
encode_plain(struct encoding *e, struct xm_slice text, bool at_start)
{
    xm_pieces_clear(&e->pieces);
    e->pieces.at_start = at_start;
    xm_pieces_add(&e->pieces, text);
    if (!xm_pieces_ok(&e->pieces))
        return xm_no_memory(e->err, "%zu bytes", text.n);
    XM_TRY(xm_pre_tokenizer_run(&e->t->pre, &e->pieces, &e->scratch, e->err));
    for (size_t i = 0; i < e->pieces.n; i++)
        XM_TRY(encode_word(e, xm_pieces_get(&e->pieces, i)));
    return XM_OK;
}

/* Computes the marks of the normalized text from those of the text. Wherever the marks change, the
 * text before that place is normalized alone, and the length of the result is the place in the
 * normalized text. If that result is not a beginning of the normalized text, or after MAX_CHANGES
 * changes, everything that follows is marked. */
static enum xm_status
map_marks(struct encoding *e, struct xm_slice text, const char *marks)
{
    enum { MAX_CHANGES = 64 };
    const struct xm_slice normal = {xm_strbuf_text(&e->normal), e->normal.n};
    size_t at = 0;
    xm_strbuf_clear(&e->marks);
    for (int i = 0; i < MAX_CHANGES && at < text.n; i++) {
        const char mark = marks[at];
        while (at < text.n && marks[at] == mark)
            at++;
        xm_strbuf_clear(&e->prefix);
        XM_TRY(xm_normalizer_run(&e->t->normalizer, xm_slice_of(text.text, at),
                                 &e->prefix, e->err));
        const struct xm_slice before = {xm_strbuf_text(&e->prefix), e->prefix.n};
        if (!xm_slice_starts_with(normal, before))
            break;
        while (e->marks.n < before.n && xm_strbuf_ok(&e->marks))
            xm_strbuf_add_n(&e->marks, &mark, 1);
    }
    while (e->marks.n < normal.n && xm_strbuf_ok(&e->marks))
        xm_strbuf_add_n(&e->marks, "\1", 1);
    return xm_strbuf_ok(&e->marks) ? XM_OK : xm_no_memory(e->err, "%zu bytes", normal.n);
}

/* Encodes raw text between the added tokens that are searched for in raw text. */
static enum xm_status
encode_raw(struct encoding *e, struct xm_slice text, const char *marks, bool at_start)
{
    xm_strbuf_clear(&e->normal);
    XM_TRY(xm_normalizer_run(&e->t->normalizer, text, &e->normal, e->err));
    if (marks && !e->t->added.normalized.has_special)
        marks = NULL;
    if (marks) {
        XM_TRY(map_marks(e, text, marks));
        marks = xm_strbuf_text(&e->marks);
    }
    text = xm_slice_of(xm_strbuf_text(&e->normal), e->normal.n);
    struct xm_section s = {0};
    for (; s.end < text.n;) {
        s = xm_added_set_next(&e->t->added.normalized, text, marks, s.end);
        if (s.id != XM_NO_TOKEN)
            XM_TRY(add_id(e, s.id));
        else
            XM_TRY(encode_plain(e, xm_slice_of(text.text + s.start, s.end - s.start),
                                at_start && s.start == 0));
    }
    return XM_OK;
}

static enum xm_status
encode_all(struct encoding *e, struct xm_slice text, const char *marks, bool add_special)
{
    if (!marks && text.n > 0 && !xm_utf8_is_valid(text)) {
        xm_utf8_repair(text, &e->repaired);
        if (!xm_strbuf_ok(&e->repaired))
            return xm_no_memory(e->err, "%zu bytes", text.n);
        text = xm_slice_of(xm_strbuf_text(&e->repaired), e->repaired.n);
    }
    const struct xm_post_processor *post = &e->t->post;
    if (add_special && !xm_token_list_add_n(e->ids, post->before.ids, post->before.n))
        return xm_no_memory(e->err, "%zu tokens", post->before.n);
    struct xm_section s = {0};
    for (; s.end < text.n;) {
        s = xm_added_set_next(&e->t->added.raw, text, marks, s.end);
        if (s.id != XM_NO_TOKEN)
            XM_TRY(add_id(e, s.id));
        else
            XM_TRY(encode_raw(e, xm_slice_of(text.text + s.start, s.end - s.start),
                              marks ? marks + s.start : NULL, s.start == 0));
    }
    if (add_special && !xm_token_list_add_n(e->ids, post->after.ids, post->after.n))
        return xm_no_memory(e->err, "%zu tokens", post->after.n);
    return XM_OK;
}

enum xm_status
xm_tokenizer_encode_marked(const struct xm_tokenizer *tokenizer, const char *text,
                           const char *marks, size_t n, bool add_special,
                           struct xm_token_list *ids, struct xm_error *err)
{
    struct encoding e = {.t = tokenizer, .ids = ids, .err = err};
    enum xm_status status = encode_all(&e, xm_slice_of(text, n), marks, add_special);
    xm_strbuf_free(&e.repaired);
    xm_strbuf_free(&e.normal);
    xm_strbuf_free(&e.prefix);
    xm_strbuf_free(&e.marks);
    xm_pieces_free(&e.pieces);
    xm_pieces_free(&e.scratch);
    xm_bpe_work_free(&e.work);
    xm_unigram_work_free(&e.unigram_work);
    xm_strbuf_free(&e.piece);
    return status;
}

enum xm_status
xm_tokenizer_encode(const struct xm_tokenizer *tokenizer, const char *text, size_t n,
                    bool add_special, struct xm_token_list *ids, struct xm_error *err)
{
    return xm_tokenizer_encode_marked(tokenizer, text, NULL, n, add_special, ids, err);
}

enum xm_status
xm_tokenizer_decode(const struct xm_tokenizer *tokenizer, const int32_t *ids, size_t n,
                    bool skip_special, struct xm_strbuf *out, struct xm_error *err)
{
    struct xm_detokenizer d;
    enum xm_status status = XM_OK;
    xm_detokenizer_init(&d, tokenizer, skip_special);
    for (size_t i = 0; status == XM_OK && i < n; i++)
        status = xm_detokenizer_push(&d, ids[i], out, err);
    if (status == XM_OK)
        status = xm_detokenizer_flush(&d, out, err);
    xm_detokenizer_free(&d);
    return status;
}

int32_t
xm_tokenizer_id_of(const struct xm_tokenizer *tokenizer, const char *text)
{
    return xm_vocab_find(&tokenizer->vocab, xm_slice_of(text, strlen(text)));
}

const char *
xm_tokenizer_kind(const struct xm_tokenizer *tokenizer)
{
    return tokenizer->wordpiece.vocab ? "WordPiece"
           : tokenizer->unigram.n > 0 ? "Unigram"
                                      : "BPE";
}

size_t
xm_tokenizer_vocab_size(const struct xm_tokenizer *tokenizer)
{
    return tokenizer->vocab.n;
}

const char *
xm_tokenizer_token_text(const struct xm_tokenizer *tokenizer, int32_t id, size_t *n)
{
    const struct xm_vocab_entry *entry = xm_vocab_get(&tokenizer->vocab, id);
    if (n)
        *n = entry ? entry->text.n : 0;
    return entry ? entry->text.text : NULL;
}

bool
xm_tokenizer_is_special(const struct xm_tokenizer *tokenizer, int32_t id)
{
    const struct xm_vocab_entry *entry = xm_vocab_get(&tokenizer->vocab, id);
    return entry && entry->special;
}
