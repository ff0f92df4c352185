/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/text_grammar.h"

enum xm_status
xm_text_grammar_begin(struct xm_text *t, struct xm_error *err)
{
    if (!t->has_text)
        return xm_fail(err, XM_UNSUPPORTED,
                       "a grammar needs a tokenizer, but the model has none");
    return xm_constraint_create(t->from.asked->grammar, t->from.package->tokenizer,
                                &t->constraint, err);
}

/* Whether the grammar names marks, which requires an answer whose marks are known. */
static bool
has_marks(const struct xm_text *t)
{
    return t->from.asked->grammar_has_marks && t->stream.answer;
}

/* Whether the grammar applies to the next token: it belongs to the text, not to a thought. */
static bool
is_in_text(const struct xm_text *t)
{
    if (has_marks(t))
        return !xm_answer_is_in_thought(t->stream.answer);
    return !t->stream.answer || xm_answer_is_in_text(t->stream.answer);
}

static bool
is_mark(const struct xm_text *t, int32_t id)
{
    return t->stream.answer && xm_answer_is_mark(t->stream.answer, id);
}

/* Whether the next token is the detokenizer's first. */
static bool
is_first(const struct xm_text *t)
{
    return t->stream.detokenizer.state.n_tokens == 0;
}

static void
set_bit(const struct xm_token_bits *bits, int32_t id, bool value)
{
    if (id < 0 || (size_t)id / 64 >= bits->n)
        return;
    const uint64_t bit = (uint64_t)1 << id % 64;
    if (value)
        bits->words[id / 64] |= bit;
    else
        bits->words[id / 64] &= ~bit;
}

static void
set_ids(const struct xm_token_bits *bits, struct xm_end_ids list, bool value)
{
    for (size_t i = 0; i < list.n; i++)
        set_bit(bits, list.ids[i], value);
}

static bool
is_empty(const struct xm_token_bits *bits, uint64_t vocabulary)
{
    for (size_t i = 0; i < bits->n && i * 64 < vocabulary; i++) {
        const uint64_t left = vocabulary - i * 64;
        if (bits->words[i] & (left < 64 ? ((uint64_t)1 << left) - 1 : UINT64_MAX))
            return false;
    }
    return true;
}

static bool
is_named(const struct xm_text *t, int32_t id)
{
    return has_marks(t) && xm_constraint_names(t->constraint, id);
}

/* Bars the answer's marks, although their spelling may match the grammar, except those that the
 * grammar names and those that may begin a thought here. */
static void
set_marks(const struct xm_text *t, const struct xm_token_bits *bits)
{
    const struct xm_answer *a = t->stream.answer;
    const bool may_think = a && !a->seen_mark && xm_constraint_is_at_start(t->constraint);
    for (size_t i = 0; a && i < XM_MAX_ANSWER_MARKS; i++)
        set_bit(bits, a->ids[i],
                is_named(t, a->ids[i]) ||
                    (may_think && xm_answer_begins_thought(a, a->ids[i])));
}

/* Bars the end tokens, or allows them if the grammar can end here; before min_tokens only if no
 * other token is allowed. */
static void
set_ends(const struct xm_text *t, const struct xm_token_bits *bits, uint64_t vocabulary)
{
    const struct xm_generation *asked = t->from.asked;
    const struct xm_end_ids ends = xm_generation_ends(t->from.package, asked);
    set_ids(bits, ends, false);
    if (asked->ignore_ends || !xm_constraint_can_end(t->constraint))
        return;
    if (t->out->ids.n >= asked->min_tokens || is_empty(bits, vocabulary))
        set_ids(bits, ends, true);
}

/* In a thought, with a grammar that has marks: bars all marks but those that end the thought. */
static void
bar_marks(const struct xm_text *t, struct xm_text_limits *out)
{
    const struct xm_answer *a = t->stream.answer;
    size_t n = 0;
    for (size_t i = 0; i < XM_MAX_ANSWER_MARKS; i++)
        if (a->ids[i] >= 0 && !xm_answer_begins_text(a, a->ids[i]) &&
            !is_named(t, a->ids[i]))
            out->marks[n++] = a->ids[i];
    out->barred[XM_BARRED_LISTS] = (struct xm_end_ids){out->marks, n};
}

enum xm_status
xm_text_grammar_limit(struct xm_text *t, uint64_t vocabulary, struct xm_text_limits *out,
                      struct xm_error *err)
{
    *out = (struct xm_text_limits){0};
    xm_generation_barred(t->from.package, t->from.asked, t->out->ids.n, out->barred);
    if (!is_in_text(t)) { /* in a thought, all tokens but end tokens are allowed */
        out->barred[1] = xm_generation_ends(t->from.package, t->from.asked);
        if (has_marks(t))
            bar_marks(t, out);
        return XM_OK;
    }
    XM_TRY(xm_constraint_allowed(t->constraint, is_first(t), &out->allowed, err));
    set_marks(t, &out->allowed);
    set_ids(&out->allowed, out->barred[0], false);
    set_ends(t, &out->allowed, vocabulary);
    out->barred[0] = out->barred[1] = (struct xm_end_ids){0};
    out->is_stuck = is_empty(&out->allowed, vocabulary);
    return XM_OK;
}

enum xm_status
xm_text_grammar_take(struct xm_text *t, int32_t id, struct xm_error *err)
{
    if (is_mark(t, id))
        return is_named(t, id) ? xm_constraint_accept_named(t->constraint, id, err)
                               : XM_OK;
    return is_in_text(t) ? xm_constraint_accept(t->constraint, id, is_first(t), err)
                         : XM_OK;
}

/* The text is over when no token can follow and the model cannot choose an end token. If an end
 * token is possible, the model must choose it. */
enum xm_status
xm_text_grammar_is_over(struct xm_text *t, bool *is_over, struct xm_error *err)
{
    const struct xm_generation *asked = t->from.asked;
    const bool can_choose_end =
        !asked->ignore_ends && xm_generation_ends(t->from.package, asked).n > 0;
    struct xm_token_bits bits;
    *is_over = is_in_text(t) && xm_constraint_can_end(t->constraint) &&
               xm_constraint_is_over(t->constraint);
    if (*is_over || can_choose_end || !is_in_text(t) ||
        !xm_constraint_can_end(t->constraint))
        return XM_OK;
    XM_TRY(xm_constraint_allowed(t->constraint, is_first(t), &bits, err));
    *is_over = is_empty(&bits, UINT64_MAX);
    return XM_OK;
}
