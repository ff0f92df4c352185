/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/token_trie.h"

#include <stdlib.h>
#include <string.h>

#include "plugin/text/tokenizer_parts.h"
#include "runtime/util/memory.h"

/* Limit on the texts of a vocabulary together, in bytes. */
enum { MOST_BYTES = 1 << 27 };

/* A token and its bytes, to be sorted. */
struct spelled {
    const uint8_t *bytes;
    uint32_t n;
    int32_t id;
};

/* ---- the tokens' bytes ------------------------------------------------------------ */

static enum xm_status
read_bytes(const struct xm_tokenizer *t, bool first, struct xm_token_trie *trie,
           struct xm_error *err)
{
    struct xm_strbuf all = {0}, one = {0};
    enum xm_status s = XM_OK;
    for (size_t id = 0; id < trie->vocab_size && s == XM_OK; id++) {
        const struct xm_vocab_entry *e = xm_vocab_get(&t->vocab, (int32_t)id);
        trie->offsets[id] = (uint32_t)all.n;
        if (!e || e->special || e->text.n == 0)
            continue;
        xm_strbuf_clear(&one);
        s = xm_token_decoder_bytes(&t->decoder, e->text, first, &one, err);
        if (s == XM_OK && one.n <= XM_TRIE_DEEPEST)
            xm_strbuf_add_n(&all, xm_strbuf_text(&one), one.n);
        if (all.n > MOST_BYTES)
            s = xm_fail(err, XM_UNSUPPORTED, "the tokens have more than %d bytes of text",
                        MOST_BYTES);
    }
    trie->offsets[trie->vocab_size] = (uint32_t)all.n;
    xm_strbuf_add_n(&all, "", 1); /* so that the bytes are not NULL */
    if (s == XM_OK && !xm_strbuf_ok(&all))
        s = xm_no_memory(err, "the bytes of tokens");
    if (s == XM_OK)
        trie->bytes = xm_strbuf_take(&all);
    xm_strbuf_free(&all);
    xm_strbuf_free(&one);
    return s;
}

static int
compare(const void *a, const void *b)
{
    const struct spelled *x = a, *y = b;
    const int order = memcmp(x->bytes, y->bytes, x->n < y->n ? x->n : y->n);
    if (order != 0)
        return order;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static size_t
list_tokens(struct xm_token_trie *trie, struct spelled *list)
{
    size_t n = 0;
    for (size_t id = 0; id < trie->vocab_size; id++) {
        const struct xm_slice bytes = xm_trie_bytes(trie, (int32_t)id);
        if (bytes.n == 0)
            continue;
        list[n++] =
            (struct spelled){(const uint8_t *)bytes.text, (uint32_t)bytes.n, (int32_t)id};
        trie->all[id / 64] |= (uint64_t)1 << id % 64;
    }
    if (n > 0)
        qsort(list, n, sizeof(*list), compare);
    return n;
}

/* ---- nodes ------------------------------------------------------------------------ */

static uint32_t
common(const struct spelled *a, const struct spelled *b)
{
    uint32_t n = 0;
    while (n < a->n && n < b->n && a->bytes[n] == b->bytes[n])
        n++;
    return n;
}

static size_t
count_nodes(const struct spelled *list, size_t n)
{
    size_t nodes = 1;
    for (size_t i = 0; i < n; i++)
        nodes += list[i].n - (i > 0 ? common(&list[i - 1], &list[i]) : 0);
    return nodes;
}

/* Makes the nodes from the sorted tokens. A node ends when a token that is not below it follows. */
static void
fill_nodes(struct xm_token_trie *trie, const struct spelled *list, size_t n)
{
    uint32_t path[XM_TRIE_DEEPEST + 1] = {0}, depth = 0, at = 1;
    trie->nodes[0] = (struct xm_trie_node){0};
    for (size_t i = 0; i < n; i++) {
        const uint32_t same = i > 0 ? common(&list[i - 1], &list[i]) : 0;
        for (; depth > same; depth--)
            trie->nodes[path[depth]].end = at;
        while (depth < list[i].n) {
            trie->nodes[at] = (struct xm_trie_node){.byte = list[i].bytes[depth],
                                                    .depth = (uint8_t)(depth + 1),
                                                    .tokens = (uint32_t)i};
            path[++depth] = at++;
        }
        trie->tokens[i] = list[i].id;
        trie->longest = list[i].n > trie->longest ? list[i].n : trie->longest;
    }
    for (; depth > 0; depth--)
        trie->nodes[path[depth]].end = at;
    trie->nodes[0].end = at;
    trie->nodes[at] = (struct xm_trie_node){.end = at, .tokens = (uint32_t)n};
}

/* ---- what is below ---------------------------------------------------------------- */

/* State inside a UTF-8 character: bytes missing, and the range of the next byte. */
struct utf8 {
    uint8_t missing, low, high;
    bool is_broken;
};

static struct utf8
begin_character(uint8_t b)
{
    if (b < 0x80)
        return (struct utf8){0};
    if (b < 0xc2 || b > 0xf4)
        return (struct utf8){.is_broken = true};
    return (struct utf8){.missing = b < 0xe0   ? 1
                                    : b < 0xf0 ? 2
                                               : 3,
                         .low = b == 0xe0   ? 0xa0
                                : b == 0xf0 ? 0x90
                                            : 0x80,
                         .high = b == 0xed   ? 0x9f
                                 : b == 0xf4 ? 0x8f
                                             : 0xbf};
}

static struct utf8
next_byte(struct utf8 s, uint8_t b)
{
    if (s.is_broken)
        return s;
    if (s.missing == 0)
        return begin_character(b);
    if (b < s.low || b > s.high)
        return (struct utf8){.is_broken = true};
    return (struct utf8){.missing = (uint8_t)(s.missing - 1), .low = 0x80, .high = 0xbf};
}

/* Computes the summaries of all subtrees. A node's own byte is kept in `begins` (if a character
 * begins with it) until the node's parent uses it. */
static enum xm_status
sum_up(struct xm_token_trie *trie, struct xm_error *err)
{
    struct utf8 states[XM_TRIE_DEEPEST + 1] = {{0}};
    uint8_t *begins = xm_calloc(trie->n_nodes, sizeof(*begins));
    uint32_t *parents = xm_calloc(trie->n_nodes, sizeof(*parents));
    uint32_t path[XM_TRIE_DEEPEST + 1] = {0};
    for (size_t i = 1; begins && parents && i < trie->n_nodes; i++) {
        const struct xm_trie_node *node = &trie->nodes[i];
        const struct utf8 before = states[node->depth - 1];
        states[node->depth] = next_byte(before, node->byte);
        begins[i] = states[node->depth].is_broken ? 2 : before.missing == 0;
        path[node->depth] = (uint32_t)i;
        parents[i] = path[node->depth - 1];
    }
    for (size_t i = trie->n_nodes; begins && parents && i-- > 1;) {
        const struct xm_trie_node *node = &trie->nodes[i];
        struct xm_trie_node *parent = &trie->nodes[parents[i]];
        const uint8_t chars = node->chars + (begins[i] == 1);
        parent->ascii[0] |= node->ascii[0];
        parent->ascii[1] |= node->ascii[1];
        if (begins[i] == 1 && node->byte < 128)
            parent->ascii[node->byte / 64] |= (uint64_t)1 << node->byte % 64;
        parent->has_non_ascii |=
            node->has_non_ascii || (begins[i] == 1 && node->byte >= 128);
        parent->is_broken |= node->is_broken || begins[i] == 2;
        parent->chars = chars > parent->chars ? chars : parent->chars;
    }
    const bool ok = begins && parents;
    xm_free(begins);
    xm_free(parents);
    return ok ? XM_OK : xm_no_memory(err, "a trie of tokens");
}

/* ---- life ------------------------------------------------------------------------- */

static enum xm_status
build(const struct xm_tokenizer *tokenizer, bool first, struct xm_token_trie *trie,
      struct xm_error *err)
{
    trie->vocab_size = tokenizer->vocab.n;
    trie->n_words = trie->vocab_size / 64 + 1;
    trie->offsets = xm_calloc(trie->vocab_size + 1, sizeof(*trie->offsets));
    trie->all = xm_calloc(trie->n_words, sizeof(*trie->all));
    if (!trie->offsets || !trie->all)
        return xm_no_memory(err, "a trie of tokens");
    XM_TRY(read_bytes(tokenizer, first, trie, err));
    struct spelled *list = xm_calloc(trie->vocab_size + 1, sizeof(*list));
    trie->tokens = xm_calloc(trie->vocab_size + 1, sizeof(*trie->tokens));
    if (list && trie->tokens) {
        trie->n_tokens = list_tokens(trie, list);
        trie->n_nodes = count_nodes(list, trie->n_tokens);
        trie->nodes = xm_calloc(trie->n_nodes + 1, sizeof(*trie->nodes));
    }
    if (trie->nodes)
        fill_nodes(trie, list, trie->n_tokens);
    xm_free(list);
    return trie->nodes ? sum_up(trie, err) : xm_no_memory(err, "a trie of tokens");
}

enum xm_status
xm_token_trie_create(const struct xm_tokenizer *tokenizer, bool first,
                     struct xm_token_trie **out, struct xm_error *err)
{
    *out = NULL;
    struct xm_token_trie *trie = xm_calloc(1, sizeof(*trie));
    if (!trie)
        return xm_no_memory(err, "a trie of tokens");
    const enum xm_status s = build(tokenizer, first, trie, err);
    if (s == XM_OK)
        *out = trie;
    else
        xm_token_trie_free(trie);
    return s;
}

void
xm_token_trie_free(struct xm_token_trie *trie)
{
    if (!trie)
        return;
    xm_free(trie->nodes);
    xm_free(trie->tokens);
    xm_free(trie->offsets);
    xm_free(trie->bytes);
    xm_free(trie->all);
    xm_free(trie);
}

enum xm_status
xm_tokenizer_trie(const struct xm_tokenizer *tokenizer, bool first,
                  const struct xm_token_trie **out, struct xm_error *err)
{
    /* The tries are a cache, so the const tokenizer may change here. */
    struct xm_tokenizer *t = (struct xm_tokenizer *)(uintptr_t)tokenizer;
    void **slot =
        &t->tries[first && xm_token_decoder_differs_at_start(&tokenizer->decoder)];
    struct xm_token_trie *trie = xm_slot_get(slot);
    if (!trie) {
        XM_TRY(xm_token_trie_create(tokenizer, first, &trie, err));
        struct xm_token_trie *kept = xm_slot_fill(slot, trie);
        if (kept != trie)
            xm_token_trie_free(trie);
        trie = kept;
    }
    *out = trie;
    return XM_OK;
}
