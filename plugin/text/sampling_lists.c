/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/sampling_lists.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/memory.h"
#include "runtime/util/number.h"

void
xm_sampling_lists_free(struct xm_sampling_lists *l)
{
    xm_free(l->biases);
    for (size_t i = 0; i < XM_N_SAMPLING; i++)
        xm_token_list_free(&l->of[i]);
    *l = (struct xm_sampling_lists){0};
}

/* ---- biases ------------------------------------------------------------------------------- */

enum xm_status
xm_sampling_add_bias(struct xm_sampling_lists *l, int32_t id, double bias,
                     struct xm_error *err)
{
    if (isnan(bias) || bias > (double)FLT_MAX)
        return xm_fail(err, XM_INVALID,
                       "logit_bias of token %" PRId32 " is %g, expected a number", id,
                       bias);
    if (l->n_biases == XM_MOST_BIASES)
        return xm_fail(err, XM_INVALID, "logit_bias has more than %d tokens",
                       XM_MOST_BIASES);
    struct xm_token_bias *grown =
        xm_grow(l->biases, &l->biases_room, l->n_biases + 1, sizeof(*grown));
    if (!grown)
        return xm_no_memory(err, "logit_bias");
    l->biases = grown;
    const float rounded = bias < -(double)FLT_MAX ? -INFINITY : (float)bias;
    l->biases[l->n_biases++] = (struct xm_token_bias){id, rounded};
    return XM_OK;
}

enum xm_status
xm_sampling_read_biases(struct xm_sampling_lists *l, const char *text,
                        struct xm_error *err)
{
    for (const char *at = text;; at++) {
        int64_t id = 0;
        size_t digits = 0;
        char *end = NULL;
        for (; at[digits] >= '0' && at[digits] <= '9' && digits < 10; digits++)
            id = 10 * id + (at[digits] - '0');
        const char sign = at[digits];
        const bool is_pair =
            digits > 0 && id <= INT32_MAX && (sign == '+' || sign == '-');
        const double bias = is_pair ? xm_parse_double(at + digits, &end) : NAN;
        if (!is_pair || end == at + digits || (*end && *end != ','))
            return xm_fail(err, XM_INVALID,
                           "'%.40s' is not a token id followed by '+' or '-' and a "
                           "number, as in 15043+1",
                           at);
        XM_TRY(xm_sampling_add_bias(l, (int32_t)id, bias, err));
        at = end;
        if (!*at)
            return XM_OK;
    }
}

/* ---- texts -------------------------------------------------------------------------------- */

static bool
has_part(const char *text, size_t n, const char *part, size_t n_part)
{
    const char *end = text + n;
    while ((size_t)(end - text) >= n_part) {
        text = memchr(text, part[0], (size_t)(end - text) - n_part + 1);
        if (!text)
            return false;
        if (memcmp(text, part, n_part) == 0)
            return true;
        text++;
    }
    return false;
}

/* Appends the text as tokens spell it: `ids` are the tokens of a letter followed by the text, and
 * everything behind the letter is appended. */
static void
spell(const struct xm_tokenizer *tokenizer, const struct xm_token_list *ids, char letter,
      struct xm_strbuf *out)
{
    bool is_behind = false;
    for (size_t i = 0; i < ids->n; i++) {
        size_t n = 0;
        const char *text = xm_tokenizer_token_text(tokenizer, ids->ids[i], &n);
        const char *at = text && !is_behind ? memchr(text, letter, n) : NULL;
        if (text && (is_behind || at))
            xm_strbuf_add_n(out, at ? at + 1 : text,
                            at ? n - (size_t)(at + 1 - text) : n);
        is_behind |= at != NULL;
    }
}

/* Appends all tokens whose spelling contains `part`. */
static enum xm_status
add_with(struct xm_token_list *out, const struct xm_tokenizer *tokenizer,
         const struct xm_strbuf *part, struct xm_error *err)
{
    const size_t n_vocab = xm_tokenizer_vocab_size(tokenizer);
    for (size_t i = 0; i < n_vocab && part->n > 0; i++) {
        size_t n = 0;
        const char *text = xm_tokenizer_token_text(tokenizer, (int32_t)i, &n);
        if (text && has_part(text, n, xm_strbuf_text(part), part->n) &&
            !xm_token_list_add(out, (int32_t)i))
            return xm_no_memory(err, "tokens");
    }
    return XM_OK;
}

/* Appends all tokens that contain the text, as in llama.cpp's DRY. If there is none, appends the
 * last token of the text behind another letter, as text-generation-webui does. */
static enum xm_status
add_to_set(struct xm_token_list *out, const struct xm_tokenizer *tokenizer,
           struct xm_slice text, struct xm_error *err)
{
    struct xm_token_list ids = {0};
    struct xm_strbuf letter = {0}, spelled = {0};
    const size_t before = out->n;
    xm_strbuf_add(&letter, "a");
    xm_strbuf_add_n(&letter, text.text, text.n);
    enum xm_status s = xm_strbuf_ok(&letter)
                           ? xm_tokenizer_encode(tokenizer, xm_strbuf_text(&letter),
                                                 letter.n, false, &ids, err)
                           : xm_no_memory(err, "a text");
    if (s == XM_OK)
        spell(tokenizer, &ids, 'a', &spelled);
    if (s == XM_OK && !xm_strbuf_ok(&spelled))
        s = xm_no_memory(err, "a text");
    if (s == XM_OK)
        s = add_with(out, tokenizer, &spelled, err);
    if (s == XM_OK && out->n == before && ids.n > 0 &&
        !xm_token_list_add(out, ids.ids[ids.n - 1]))
        s = xm_no_memory(err, "tokens");
    xm_token_list_free(&ids);
    xm_strbuf_free(&letter);
    xm_strbuf_free(&spelled);
    return s;
}

/* Appends the tokens of `before` followed by the text, and a -1. */
static enum xm_status
add_sequence(struct xm_token_list *out, const struct xm_tokenizer *tokenizer,
             const char *before, struct xm_slice text, struct xm_error *err)
{
    struct xm_strbuf spaced = {0};
    const size_t first = out->n;
    xm_strbuf_add(&spaced, before);
    xm_strbuf_add_n(&spaced, text.text, text.n);
    enum xm_status s = xm_strbuf_ok(&spaced)
                           ? xm_tokenizer_encode(tokenizer, xm_strbuf_text(&spaced),
                                                 spaced.n, false, out, err)
                           : xm_no_memory(err, "a text");
    if (s == XM_OK && out->n == first)
        s = xm_fail(err, XM_INVALID, "'%.*s' has no tokens",
                    text.n < 40 ? (int)text.n : 40, text.text);
    if (s == XM_OK && !xm_token_list_add(out, -1))
        s = xm_no_memory(err, "tokens");
    if (s != XM_OK)
        out->n = first;
    xm_strbuf_free(&spaced);
    return s;
}

enum xm_status
xm_sampling_add_text(struct xm_sampling_lists *l, size_t at,
                     const struct xm_tokenizer *tokenizer, struct xm_slice text,
                     struct xm_error *err)
{
    const struct xm_sampling_row *row = &xm_sampling_rows[at];
    if (!tokenizer)
        return xm_fail(err, XM_INVALID, "%s needs a tokenizer", row->member);
    if (text.n == 0)
        return xm_fail(err, XM_INVALID, "%s: a text is empty", row->member);
    if (l->n_texts == XM_MOST_SAMPLING_TEXTS)
        return xm_fail(err, XM_INVALID, "%s: there are more than %d texts", row->member,
                       XM_MOST_SAMPLING_TEXTS);
    l->n_texts++;
    l->said[at] = true;
    if (row->kind == XM_SAMPLING_SET)
        return add_to_set(&l->of[at], tokenizer, text, err);
    XM_TRY(add_sequence(&l->of[at], tokenizer, "", text, err));
    return add_sequence(&l->of[at], tokenizer, " ", text, err);
}

static int
compare_ids(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static enum xm_status
add_usual_breakers(struct xm_sampling_lists *l, const struct xm_tokenizer *tokenizer,
                   struct xm_error *err)
{
    static const char *const usual[] = {"\n", ":", "\"", "*"};
    for (size_t i = 0; i < XM_ARRAY_LEN(usual); i++)
        XM_TRY(xm_sampling_add_text(l, XM_AT_dry_breakers, tokenizer,
                                    xm_slice_of(usual[i], strlen(usual[i])), err));
    return XM_OK;
}

enum xm_status
xm_sampling_take_lists(struct xm_sampling_lists *l, const struct xm_tokenizer *tokenizer,
                       struct xm_sampling *s, struct xm_error *err)
{
    if (s->dry_multiplier > 0.0f && tokenizer && !l->said[XM_AT_dry_breakers] &&
        s->dry_breakers.n == 0)
        XM_TRY(add_usual_breakers(l, tokenizer, err));
    for (size_t i = 0; i < XM_N_SAMPLING; i++) {
        const struct xm_sampling_row *row = &xm_sampling_rows[i];
        struct xm_token_list *list = &l->of[i];
        void *member = (char *)s + row->offset;
        if (row->kind == XM_SAMPLING_SET && list->n > 0)
            qsort(list->ids, list->n, sizeof(*list->ids), compare_ids);
        if ((row->kind == XM_SAMPLING_SET || row->kind == XM_SAMPLING_SEQUENCES) &&
            l->said[i])
            *(struct xm_token_view *)member = (struct xm_token_view){list->ids, list->n};
        else if (row->kind == XM_SAMPLING_BIAS && l->n_biases > 0)
            *(struct xm_bias_view *)member =
                (struct xm_bias_view){l->biases, l->n_biases};
    }
    return XM_OK;
}
