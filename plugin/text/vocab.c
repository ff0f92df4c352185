/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/vocab.h"

#include <stdio.h>

#include "runtime/util/utf8.h"

/* FNV-1a, folded: the table is indexed by low bits. */
static uint64_t
hash(struct xm_slice s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (uint8_t)s.text[i]) * 0x100000001b3u;
    return h ^ h >> 32;
}

/* The slot that holds `text`, or the free one where it belongs. */
static size_t
find_slot(const struct xm_vocab *vocab, struct xm_slice text)
{
    size_t i = (size_t)hash(text) & (vocab->n_slots - 1);
    while (vocab->slots[i] != XM_NO_TOKEN &&
           !xm_slice_equal(vocab->entries[vocab->slots[i]].text, text))
        i = (i + 1) & (vocab->n_slots - 1);
    return i;
}

enum xm_status
xm_vocab_reserve(struct xm_vocab *vocab, size_t n_tokens, struct xm_error *err)
{
    size_t n_slots = 64;
    while (n_slots / 2 <= vocab->n_tokens + n_tokens) /* at most half full */
        n_slots *= 2;
    if (n_slots <= vocab->n_slots)
        return XM_OK;
    int32_t *slots = xm_malloc(n_slots * sizeof(*slots));
    if (!slots)
        return xm_no_memory(err, "%zu tokens", n_tokens);
    for (size_t i = 0; i < n_slots; i++)
        slots[i] = XM_NO_TOKEN;
    int32_t *old = vocab->slots;
    const size_t n_old = vocab->n_slots;
    vocab->slots = slots;
    vocab->n_slots = n_slots;
    /* Of tokens with equal texts, the id in the old table stays the one that is found. */
    for (size_t i = 0; i < n_old; i++)
        if (old[i] != XM_NO_TOKEN)
            slots[find_slot(vocab, vocab->entries[old[i]].text)] = old[i];
    xm_free(old);
    return XM_OK;
}

static enum xm_status
make_entry(struct xm_vocab *vocab, int32_t id, struct xm_error *err)
{
    size_t need = (size_t)id + 1;
    struct xm_vocab_entry *grown =
        xm_grow(vocab->entries, &vocab->capacity, need, sizeof(*grown));
    if (!grown)
        return xm_no_memory(err, "token id %d", id);
    vocab->entries = grown;
    for (; vocab->n < need; vocab->n++)
        vocab->entries[vocab->n] = (struct xm_vocab_entry){0};
    return XM_OK;
}

static enum xm_status
set_entry(struct xm_vocab *vocab, struct xm_slice text, int32_t id, bool in_model,
          struct xm_error *err)
{
    XM_TRY(make_entry(vocab, id, err));
    struct xm_vocab_entry *entry = &vocab->entries[id];
    if (entry->text.text)
        return xm_fail(err, XM_INVALID, "token id %d is both '%s' and '%s'", id,
                       xm_utf8_shown(entry->text).text, xm_utf8_shown(text).text);
    char *copy = xm_arena_strndup(&vocab->arena, text.text, text.n);
    if (!copy)
        return xm_no_memory(err, "the text of token %d", id);
    *entry = (struct xm_vocab_entry){xm_slice_of(copy, text.n), in_model, false};
    vocab->n_tokens++;
    return XM_OK;
}

enum xm_status
xm_vocab_add(struct xm_vocab *vocab, struct xm_slice text, int32_t id, bool in_model,
             struct xm_error *err)
{
    XM_TRY(xm_vocab_reserve(vocab, 1, err));
    size_t slot = find_slot(vocab, text);
    if (vocab->slots[slot] != XM_NO_TOKEN)
        return xm_fail(err, XM_INVALID, "token '%s' has ids %d and %d",
                       xm_utf8_shown(text).text, vocab->slots[slot], id);
    XM_TRY(set_entry(vocab, text, id, in_model, err));
    vocab->slots[slot] = id;
    return XM_OK;
}

enum xm_status
xm_vocab_add_repeatable(struct xm_vocab *vocab, struct xm_slice text, int32_t id,
                        enum xm_vocab_repeat repeat, struct xm_error *err)
{
    XM_TRY(xm_vocab_reserve(vocab, 1, err));
    size_t slot = find_slot(vocab, text);
    XM_TRY(set_entry(vocab, text, id, true, err));
    if (vocab->slots[slot] == XM_NO_TOKEN || repeat == XM_REPEAT_FINDS_LAST)
        vocab->slots[slot] = id;
    return XM_OK;
}

int32_t
xm_vocab_find(const struct xm_vocab *vocab, struct xm_slice text)
{
    return vocab->slots ? vocab->slots[find_slot(vocab, text)] : XM_NO_TOKEN;
}

int32_t
xm_vocab_find_in_model(const struct xm_vocab *vocab, struct xm_slice text)
{
    int32_t id = xm_vocab_find(vocab, text);
    return id != XM_NO_TOKEN && vocab->entries[id].in_model ? id : XM_NO_TOKEN;
}

int32_t
xm_vocab_find_ordinary(const struct xm_vocab *vocab, struct xm_slice text)
{
    int32_t id = xm_vocab_find_in_model(vocab, text);
    return id != XM_NO_TOKEN && !vocab->entries[id].special ? id : XM_NO_TOKEN;
}

const struct xm_vocab_entry *
xm_vocab_get(const struct xm_vocab *vocab, int32_t id)
{
    if (id < 0 || (size_t)id >= vocab->n || !vocab->entries[id].text.text)
        return NULL;
    return &vocab->entries[id];
}

void
xm_vocab_find_bytes(const struct xm_vocab *vocab, int32_t ids[256])
{
    for (int b = 0; b < 256; b++) {
        char name[8];
        int n = snprintf(name, sizeof(name), "<0x%02X>", b);
        ids[b] = xm_vocab_find_in_model(vocab, xm_slice_of(name, (size_t)n));
    }
}

void
xm_vocab_free(struct xm_vocab *vocab)
{
    xm_arena_free(&vocab->arena);
    xm_free(vocab->entries);
    xm_free(vocab->slots);
    *vocab = (struct xm_vocab){0};
}
