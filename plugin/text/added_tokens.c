/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/added_tokens.h"

#include <stdlib.h>

#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

static int
compare_texts(const void *a, const void *b)
{
    const struct xm_added_token *x = a, *y = b;
    size_t n = x->text.n < y->text.n ? x->text.n : y->text.n;
    int order = memcmp(x->text.text, y->text.text, n);
    if (order != 0)
        return order;
    if (x->text.n != y->text.n)
        return x->text.n < y->text.n ? -1 : 1;
    /* two tokens that normalize to the same text */
    return (x->id > y->id) - (x->id < y->id);
}

static enum xm_status
add_to_set(struct xm_added_set *set, const struct xm_added_token *token,
           struct xm_error *err)
{
    if (token->text.n == 0)
        return XM_OK; /* an empty text would match everywhere */
    struct xm_added_token *grown =
        xm_grow(set->tokens, &set->capacity, set->n + 1, sizeof(*grown));
    if (!grown)
        return xm_no_memory(err, "%zu added tokens", set->n + 1);
    set->tokens = grown;
    set->tokens[set->n++] = *token;
    set->starts[(uint8_t)token->text.text[0]] = true;
    set->has_special = set->has_special || token->special;
    return XM_OK;
}

/* Adds the token to the vocabulary, unless the model's vocabulary has the same text with the same
 * id already. */
static enum xm_status
add_to_vocab(struct xm_vocab *vocab, struct xm_slice text, int32_t id, bool special,
             struct xm_error *err)
{
    if (xm_vocab_find(vocab, text) != id)
        XM_TRY(xm_vocab_add(vocab, text, id, false, err));
    if (special)
        vocab->entries[id].special = true;
    return XM_OK;
}

static enum xm_status
normalize_text(struct xm_added_tokens *out, const struct xm_normalizer *normalizer,
               struct xm_slice *text, struct xm_error *err)
{
    struct xm_strbuf normal = {0};
    enum xm_status status = xm_normalizer_run(normalizer, *text, &normal, err);
    char *copy = NULL;
    if (status == XM_OK)
        copy = xm_arena_strndup(&out->arena, xm_strbuf_text(&normal), normal.n);
    if (status == XM_OK && !copy)
        status = xm_no_memory(err, "an added token");
    *text = xm_slice_of(copy, copy ? normal.n : 0);
    xm_strbuf_free(&normal);
    return status;
}

static enum xm_status
load_token(yyjson_val *value, struct xm_vocab *vocab,
           const struct xm_normalizer *normalizer, struct xm_added_tokens *out,
           struct xm_error *err)
{
    struct xm_added_token token = {0};
    bool normalized = false, special = false;
    if (!yyjson_is_obj(value))
        return xm_fail(err, XM_INVALID, "not an object");
    XM_TRY(xm_json_token_id(yyjson_obj_get(value, "id"), "id", &token.id, err));
    XM_TRY(xm_json_text(value, "content", &token.text, err));
    if (!token.text.text)
        return xm_fail(err, XM_INVALID, "token %d has no 'content'", token.id);
    XM_TRY(xm_json_bool(value, "single_word", &token.single_word, err));
    XM_TRY(xm_json_bool(value, "lstrip", &token.lstrip, err));
    XM_TRY(xm_json_bool(value, "rstrip", &token.rstrip, err));
    XM_TRY(xm_json_bool(value, "normalized", &normalized, err));
    XM_TRY(xm_json_bool(value, "special", &special, err));
    XM_TRY(add_to_vocab(vocab, token.text, token.id, special, err));
    token.special = vocab->entries[token.id].special;
    /* the vocabulary's copy, which outlives the JSON document */
    token.text = vocab->entries[token.id].text;
    if (!normalized)
        return add_to_set(&out->raw, &token, err);
    XM_TRY(normalize_text(out, normalizer, &token.text, err));
    return add_to_set(&out->normalized, &token, err);
}

static void
sort(struct xm_added_set *set)
{
    if (set->n > 1)
        qsort(set->tokens, set->n, sizeof(*set->tokens), compare_texts);
}

enum xm_status
xm_added_tokens_add(struct xm_added_tokens *tokens, const struct xm_added_token *token,
                    struct xm_error *err)
{
    return add_to_set(&tokens->raw, token, err);
}

void
xm_added_tokens_sort(struct xm_added_tokens *tokens)
{
    sort(&tokens->raw);
    sort(&tokens->normalized);
}

enum xm_status
xm_added_tokens_load(yyjson_val *array, struct xm_vocab *vocab,
                     const struct xm_normalizer *normalizer, struct xm_added_tokens *out,
                     struct xm_error *err)
{
    if (!array || yyjson_is_null(array))
        return XM_OK;
    if (!yyjson_is_arr(array))
        return xm_fail(err, XM_INVALID, "'added_tokens' is not an array");
    size_t i, n;
    yyjson_val *value;
    yyjson_arr_foreach(array, i, n, value)
    {
        enum xm_status status = load_token(value, vocab, normalizer, out, err);
        if (status != XM_OK) {
            xm_error_prefix(err, "added token %zu", i);
            return status;
        }
    }
    xm_added_tokens_sort(out);
    return XM_OK;
}

void
xm_added_tokens_free(struct xm_added_tokens *tokens)
{
    xm_free(tokens->raw.tokens);
    xm_free(tokens->normalized.tokens);
    xm_arena_free(&tokens->arena);
    *tokens = (struct xm_added_tokens){0};
}

/* Returns the first token in [low, high) whose byte at `depth` is at least `b`. All tokens of the
 * range agree in the bytes before `depth`; a token that ends there sorts first. */
static size_t
bound(const struct xm_added_set *set, size_t low, size_t high, size_t depth, int b)
{
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        struct xm_slice text = set->tokens[mid].text;
        if (depth >= text.n || (uint8_t)text.text[depth] < b)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Returns the longest token with which `s` begins, or NULL. Special tokens do not match bytes whose
 * mark is 1 (message text). */
static const struct xm_added_token *
longest_at(const struct xm_added_set *set, struct xm_slice s, const char *marks)
{
    bool marked = false;
    const struct xm_added_token *found = NULL;
    size_t low = 0, high = set->n;
    for (size_t depth = 0; depth < s.n && low < high; depth++) {
        int b = (uint8_t)s.text[depth];
        low = bound(set, low, high, depth, b);
        high = bound(set, low, high, depth, b + 1);
        marked = marked || (marks && marks[depth]);
        if (low < high && set->tokens[low].text.n == depth + 1)
            found = marked && set->tokens[low].special ? found : &set->tokens[low];
    }
    return found;
}

static bool
stands_alone(struct xm_slice text, size_t start, size_t end)
{
    int32_t code;
    if (end < text.n) {
        xm_utf8_next(xm_slice_of(text.text + end, text.n - end), &code);
        if (xm_utf8_is_word(code))
            return false;
    }
    if (start == 0)
        return true;
    size_t last = start - 1;
    while (last > 0 && ((uint8_t)text.text[last] & 0xc0) == 0x80)
        last--;
    xm_utf8_next(xm_slice_of(text.text + last, start - last), &code);
    return !xm_utf8_is_word(code);
}

/* Finds the first token at or after byte `from`. *out is its section, with the white space that
 * lstrip and rstrip add. False: there is none. */
static bool
find_token(const struct xm_added_set *set, struct xm_slice text, const char *marks,
           size_t from, struct xm_section *out)
{
    for (size_t i = from; i < text.n;) {
        const struct xm_added_token *t = NULL;
        if (set->starts[(uint8_t)text.text[i]])
            t = longest_at(set, xm_slice_of(text.text + i, text.n - i),
                           marks ? marks + i : NULL);
        if (!t) {
            i++;
            continue;
        }
        size_t start = i, end = i + t->text.n;
        i = end; /* a refused match is skipped as a whole */
        if (t->single_word && !stands_alone(text, start, end))
            continue;
        if (t->lstrip)
            start =
                from + xm_utf8_trim_right(xm_slice_of(text.text + from, start - from)).n;
        if (t->rstrip)
            end =
                text.n - xm_utf8_trim_left(xm_slice_of(text.text + end, text.n - end)).n;
        *out = (struct xm_section){start, end, t->id};
        return true;
    }
    return false;
}

struct xm_section
xm_added_set_next(const struct xm_added_set *set, struct xm_slice text, const char *marks,
                  size_t from)
{
    struct xm_section token = {text.n, text.n, XM_NO_TOKEN};
    if (set->n > 0 && find_token(set, text, marks, from, &token) && token.start == from)
        return token;
    return (struct xm_section){from, token.start, XM_NO_TOKEN};
}
