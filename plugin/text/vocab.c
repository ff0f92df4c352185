/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/vocab.h"

#include <stdio.h>

#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

static uint64_t
hash_of(struct xm_slice text)
{
    return xm_hash_bytes(XM_HASH_SEED, text.text, text.n);
}

static int32_t
find_hashed(const struct xm_vocab *vocab, struct xm_slice text, uint64_t hash)
{
    struct xm_hash_probe p = xm_hash_begin(hash);
    while (xm_hash_next(&vocab->by_text, &p))
        if (xm_slice_equal(vocab->entries[p.item].text, text))
            return (int32_t)p.item;
    return XM_NO_TOKEN;
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
    return XM_OK;
}

/* Adds the token to the index, so that xm_vocab_find finds it. */
static enum xm_status
index_entry(struct xm_vocab *vocab, int32_t id, uint64_t hash, struct xm_error *err)
{
    return xm_hash_add(&vocab->by_text, hash, (uint32_t)id)
               ? XM_OK
               : xm_no_memory(err, "the index of token %d", id);
}

enum xm_status
xm_vocab_add(struct xm_vocab *vocab, struct xm_slice text, int32_t id, bool in_model,
             struct xm_error *err)
{
    const uint64_t hash = hash_of(text);
    const int32_t same = find_hashed(vocab, text, hash);
    if (same != XM_NO_TOKEN)
        return xm_fail(err, XM_INVALID, "token '%s' has ids %d and %d",
                       xm_utf8_shown(text).text, same, id);
    XM_TRY(set_entry(vocab, text, id, in_model, err));
    return index_entry(vocab, id, hash, err);
}

enum xm_status
xm_vocab_add_repeatable(struct xm_vocab *vocab, struct xm_slice text, int32_t id,
                        enum xm_vocab_repeat repeat, struct xm_error *err)
{
    const uint64_t hash = hash_of(text);
    const int32_t same = find_hashed(vocab, text, hash);
    XM_TRY(set_entry(vocab, text, id, true, err));
    if (same == XM_NO_TOKEN)
        return index_entry(vocab, id, hash, err);
    if (repeat == XM_REPEAT_FINDS_LAST)
        xm_hash_move(&vocab->by_text, hash, (uint32_t)same, (uint32_t)id);
    return XM_OK;
}

enum xm_status
xm_vocab_load(yyjson_val *model, struct xm_vocab *vocab, struct xm_error *err)
{
    yyjson_val *object, *key, *value;
    size_t i, n;
    XM_TRY(xm_json_object(model, "vocab", &object, err));
    yyjson_obj_foreach(object, i, n, key, value)
    {
        int32_t id;
        XM_TRY(xm_json_token_id(value, yyjson_get_str(key), &id, err));
        XM_TRY(xm_vocab_add(vocab, xm_slice_of(yyjson_get_str(key), yyjson_get_len(key)),
                            id, true, err));
    }
    return XM_OK;
}

int32_t
xm_vocab_find(const struct xm_vocab *vocab, struct xm_slice text)
{
    return find_hashed(vocab, text, hash_of(text));
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
    xm_hash_free(&vocab->by_text);
    *vocab = (struct xm_vocab){0};
}
