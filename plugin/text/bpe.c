/* SPDX-License-Identifier: Apache-2.0
 *
 * The symbols of a word are a linked list in an array; a heap holds the pairs that could
 * be merged. A merge leaves stale pairs in the heap: they are recognised when they come
 * out, because the two neighbours no longer merge to the same token.
 *
 * Pairs of equal rank merge from left to right.
 *
 * If the vocabulary has ranks, a character that is not a token is a symbol without an id: its text
 * may still become part of a token. Such symbols that remain at the end become byte tokens or
 * unknown tokens.
 */
#include "plugin/text/bpe.h"

#include "runtime/util/utf8.h"

enum { DEAD = -2, END = -1 };

struct xm_bpe_symbol {
    /* XM_NO_TOKEN: its text is no token; DEAD: merged into its left neighbour */
    int32_t id;
    int32_t previous, next; /* indices of the neighbours; END: none */
    uint32_t start, bytes;  /* position in the word; only with ranks */
};

struct xm_bpe_candidate {
    uint32_t rank;
    int32_t at;     /* index of the left symbol */
    int32_t merged; /* the token that the pair becomes */
};

static bool
comes_before(const struct xm_bpe_candidate *a, const struct xm_bpe_candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static bool
push(struct xm_bpe_work *work, struct xm_bpe_candidate c)
{
    struct xm_bpe_candidate *heap =
        xm_grow(work->heap, &work->heap_capacity, work->n_heap + 1, sizeof(*heap));
    if (!heap)
        return false;
    work->heap = heap;
    size_t i = work->n_heap++;
    while (i > 0 && comes_before(&c, &heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = c;
    return true;
}

static struct xm_bpe_candidate
pop(struct xm_bpe_work *work)
{
    struct xm_bpe_candidate *heap = work->heap;
    struct xm_bpe_candidate top = heap[0], last = heap[--work->n_heap];
    size_t n = work->n_heap, i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < n && comes_before(&heap[child + 1], &heap[child]))
            child++;
        if (child >= n || !comes_before(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

/* Sets *out to the pair of symbol `at` and its right neighbour. False: they cannot be merged. */
static bool
find_pair(const struct xm_bpe *bpe, const struct xm_bpe_work *work, int32_t at,
          struct xm_bpe_candidate *out)
{
    const struct xm_bpe_symbol *s = &work->symbols[at];
    if (s->id == DEAD || s->next == END)
        return false;
    const struct xm_bpe_symbol *next = &work->symbols[s->next];
    if (bpe->ranks) {
        int32_t id = xm_vocab_find_ordinary(
            bpe->vocab,
            xm_slice_of(work->word.text + s->start, (size_t)s->bytes + next->bytes));
        if (id != XM_NO_TOKEN)
            *out = (struct xm_bpe_candidate){bpe->ranks[id], at, id};
        return id != XM_NO_TOKEN;
    }
    const struct xm_merge *m = xm_bpe_find_merge(bpe, s->id, next->id);
    if (m)
        *out = (struct xm_bpe_candidate){m->rank, at, m->merged};
    return m != NULL;
}

static bool
push_pair(const struct xm_bpe *bpe, struct xm_bpe_work *work, int32_t at)
{
    struct xm_bpe_candidate c;
    return !find_pair(bpe, work, at, &c) || push(work, c);
}

static bool
is_stale(const struct xm_bpe *bpe, const struct xm_bpe_work *work,
         const struct xm_bpe_candidate *c)
{
    struct xm_bpe_candidate now;
    return !find_pair(bpe, work, c->at, &now) || now.merged != c->merged;
}

static bool
merge_all(const struct xm_bpe *bpe, struct xm_bpe_work *work)
{
    struct xm_bpe_symbol *symbols = work->symbols;
    work->n_heap = 0;
    for (size_t i = 0; i < work->n_symbols; i++)
        if (!push_pair(bpe, work, (int32_t)i))
            return false;
    while (work->n_heap > 0) {
        struct xm_bpe_candidate c = pop(work);
        if (is_stale(bpe, work, &c))
            continue;
        struct xm_bpe_symbol *left = &symbols[c.at], *right = &symbols[left->next];
        left->id = c.merged;
        left->bytes += right->bytes;
        left->next = right->next;
        right->id = DEAD;
        if (left->next != END)
            symbols[left->next].previous = c.at;
        if (left->previous != END && !push_pair(bpe, work, left->previous))
            return false;
        if (!push_pair(bpe, work, c.at))
            return false;
    }
    return true;
}

static bool
add_symbol_of(struct xm_bpe_work *work, int32_t id, size_t start, size_t bytes)
{
    struct xm_bpe_symbol *grown = xm_grow(work->symbols, &work->symbol_capacity,
                                          work->n_symbols + 1, sizeof(*grown));
    if (!grown)
        return false;
    work->symbols = grown;
    int32_t i = (int32_t)work->n_symbols++;
    grown[i] = (struct xm_bpe_symbol){id, i - 1, END, (uint32_t)start, (uint32_t)bytes};
    if (i > 0)
        grown[i - 1].next = i;
    return true;
}

static bool
add_symbol(struct xm_bpe_work *work, int32_t id)
{
    return add_symbol_of(work, id, 0, 0);
}

/* Returns the token of character `c` with the vocabulary's prefix (unless it is the first of the
 * word) and suffix (if it is the last); XM_NO_TOKEN: there is none. */
static int32_t
find_character(const struct xm_bpe *bpe, struct xm_bpe_work *work, struct xm_slice *c,
               bool is_first, bool is_last)
{
    bool prefixed = bpe->prefix_bytes > 0 && !is_first;
    bool suffixed = bpe->suffix_bytes > 0 && is_last;
    if (prefixed || suffixed) {
        xm_strbuf_clear(&work->name);
        if (prefixed)
            xm_strbuf_add_n(&work->name, bpe->prefix, bpe->prefix_bytes);
        xm_strbuf_add_n(&work->name, c->text, c->n);
        if (suffixed)
            xm_strbuf_add_n(&work->name, bpe->suffix, bpe->suffix_bytes);
        *c = xm_slice_of(xm_strbuf_text(&work->name), work->name.n);
    }
    return xm_vocab_find_in_model(bpe->vocab, *c);
}

static bool
has_byte_tokens(const struct xm_bpe *bpe, struct xm_slice c)
{
    if (!bpe->byte_fallback)
        return false;
    for (size_t i = 0; i < c.n; i++)
        if (bpe->byte_ids[(uint8_t)c.text[i]] == XM_NO_TOKEN)
            return false;
    return true;
}

/* Cuts the word into symbols, one token each. The unknown token of an unknown character is added
 * only when the next character is known, because the next one may be fused with it. Byte tokens are
 * added at once and may therefore precede it: the reference does the same, and models were trained
 * with it. */
static bool
cut_into_symbols(const struct xm_bpe *bpe, struct xm_slice word, struct xm_bpe_work *work)
{
    bool unknown_waits = false, ok = true;
    int32_t code;
    work->n_symbols = 0;
    for (size_t i = 0, n; ok && i < word.n; i += n) {
        n = xm_utf8_next(xm_slice_of(word.text + i, word.n - i), &code);
        struct xm_slice c = xm_slice_of(word.text + i, n);
        int32_t id = find_character(bpe, work, &c, i == 0, i + n == word.n);
        if (id != XM_NO_TOKEN) {
            if (unknown_waits)
                ok = add_symbol(work, bpe->unk);
            unknown_waits = false;
            ok = ok && add_symbol(work, id);
        } else if (has_byte_tokens(bpe, c)) {
            for (size_t b = 0; ok && b < c.n; b++)
                ok = add_symbol(work, bpe->byte_ids[(uint8_t)c.text[b]]);
        } else if (bpe->unk != XM_NO_TOKEN) {
            if (unknown_waits && !bpe->fuse_unk)
                ok = add_symbol(work, bpe->unk);
            unknown_waits = true;
        }
    }
    if (ok && unknown_waits)
        ok = add_symbol(work, bpe->unk);
    return ok && xm_strbuf_ok(&work->name);
}

/* Cuts the word into symbols if the vocabulary has ranks: each character is a symbol, with or
 * without an id. */
static bool
cut_into_texts(const struct xm_bpe *bpe, struct xm_slice word, struct xm_bpe_work *work)
{
    int32_t code;
    bool ok = true;
    work->n_symbols = 0;
    for (size_t i = 0, n; ok && i < word.n; i += n) {
        n = xm_utf8_next(xm_slice_of(word.text + i, word.n - i), &code);
        int32_t id = xm_vocab_find_in_model(bpe->vocab, xm_slice_of(word.text + i, n));
        ok = add_symbol_of(work, id, i, n);
    }
    return ok;
}

/* Appends byte tokens or the unknown token for a symbol that is not a token. follows_unknown: the
 * symbol before it was not a token either. */
static bool
add_unknown(const struct xm_bpe *bpe, struct xm_slice text, bool follows_unknown,
            struct xm_token_list *out)
{
    bool ok = true;
    if (has_byte_tokens(bpe, text)) {
        for (size_t b = 0; ok && b < text.n; b++)
            ok = xm_token_list_add(out, bpe->byte_ids[(uint8_t)text.text[b]]);
        return ok;
    }
    if (bpe->unk == XM_NO_TOKEN || (follows_unknown && bpe->fuse_unk))
        return true;
    return xm_token_list_add(out, bpe->unk);
}

/* Appends the tokens of all symbols that are left. Symbol 0 is never merged into a left neighbour,
 * so the list begins there. */
static bool
add_symbols(const struct xm_bpe *bpe, const struct xm_bpe_work *work,
            struct xm_token_list *out)
{
    bool ok = true, follows_unknown = false;
    for (int32_t i = work->n_symbols > 0 ? 0 : END; ok && i != END;) {
        const struct xm_bpe_symbol *s = &work->symbols[i];
        const struct xm_slice text = xm_slice_of(work->word.text + s->start, s->bytes);
        ok = s->id != XM_NO_TOKEN ? xm_token_list_add(out, s->id)
                                  : add_unknown(bpe, text, follows_unknown, out);
        follows_unknown = s->id == XM_NO_TOKEN;
        i = s->next;
    }
    return ok;
}

static bool
is_taken_whole(const struct xm_bpe *bpe, struct xm_slice word)
{
    return bpe->ignore_merges ||
           (bpe->whole_newlines && word.n > 0 && word.text[0] == '\n');
}

enum xm_status
xm_bpe_encode(const struct xm_bpe *bpe, struct xm_slice word, struct xm_bpe_work *work,
              struct xm_token_list *out, struct xm_error *err)
{
    int32_t whole = XM_NO_TOKEN;
    if (word.n > INT32_MAX / 2)
        return xm_fail(err, XM_UNSUPPORTED, "a word of %zu bytes", word.n);
    if (is_taken_whole(bpe, word))
        whole = xm_vocab_find_ordinary(bpe->vocab, word);
    bool ok;
    work->word = word;
    if (whole != XM_NO_TOKEN)
        ok = xm_token_list_add(out, whole);
    else
        ok = (bpe->ranks ? cut_into_texts : cut_into_symbols)(bpe, word, work) &&
             merge_all(bpe, work) && add_symbols(bpe, work, out);
    if (!ok)
        return xm_no_memory(err, "a word of %zu bytes", word.n);
    return XM_OK;
}

void
xm_bpe_work_free(struct xm_bpe_work *work)
{
    xm_free(work->symbols);
    xm_free(work->heap);
    xm_strbuf_free(&work->name);
    *work = (struct xm_bpe_work){0};
}
