/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that the values of a generation config are possible together; reports the first rule that
 * is broken.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plugin/genai/genai.h"

enum { MOST_BEAMS = 1024 };

/* ---- the fields that rules refer to -------------------------------------------------------- */

enum kind { SIZE, REAL, FLAG, ID, CRITERION };

enum name {
    NONE,
#define FIELD(kind, name, its_default) AT_##name,
#include "plugin/genai/generation_fields.def"
    AT_eos_token_id,
    AT_stop_criteria
};

#define ROW(kind, name)                                                                  \
    [AT_##name] = {kind, #name, offsetof(ov_genai_generation_config, name)},
static const struct field {
    enum kind kind;
    const char *name;
    size_t offset;
} fields[] = {
#define FIELD(kind, name, its_default) ROW(kind, name)
#include "plugin/genai/generation_fields.def"
    ROW(ID, eos_token_id) ROW(CRITERION, stop_criteria)};
#undef ROW

static void
add_value(struct xm_strbuf *out, const ov_genai_generation_config *c, enum name name)
{
    const void *at = (const char *)c + fields[name].offset;
    switch (fields[name].kind) {
    case SIZE:
        xm_strbuf_printf(out, "%zu", *(const size_t *)at);
        break;
    case REAL:
        xm_strbuf_printf(out, "%g", (double)*(const float *)at);
        break;
    case FLAG:
        xm_strbuf_add(out, *(const bool *)at ? "true" : "false");
        break;
    case ID:
        xm_strbuf_printf(out, "%" PRId64, *(const int64_t *)at);
        break;
    case CRITERION:
        xm_strbuf_printf(out, "%u", (unsigned)*(const StopCriteria *)at);
    }
}

static const struct field *
find_field(const char *name)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(fields); i++)
        if (fields[i].name && strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

double
xm_genai_config_number(const ov_genai_generation_config *c, const char *name)
{
    const struct field *f = find_field(name);
    const void *at = (const char *)c + (f ? f->offset : 0);
    if (!f || (f->kind != SIZE && f->kind != REAL))
        return 0.0;
    if (f->kind == REAL)
        return (double)*(const float *)at;
    const size_t n = *(const size_t *)at;
    return n == SIZE_MAX ? 0.0 : (double)n;
}

void
xm_genai_config_set_number(ov_genai_generation_config *c, const char *name, double x)
{
    const struct field *f = find_field(name);
    void *at = (char *)c + (f ? f->offset : 0);
    if (f && f->kind == REAL)
        *(float *)at = (float)x;
    else if (f && f->kind == SIZE)
        *(size_t *)at = (size_t)x;
}

/* ---- rules ------------------------------------------------------------------------------- */

static bool
has_limit(const ov_genai_generation_config *c)
{
    return c->max_new_tokens != SIZE_MAX || c->max_length != SIZE_MAX;
}

static bool
has_ends(const ov_genai_generation_config *c)
{
    return !c->ignore_eos && (c->eos_token_id >= 0 || c->n_stop_ids > 0);
}

static bool
is_endless(const ov_genai_generation_config *c)
{
    return !has_limit(c) && !has_ends(c) && c->n_stops == 0;
}

/* Whether end tokens are ignored without a limit. Stop strings are no limit, because they may never
 * occur. */
static bool
is_ignoring_all_ends(const ov_genai_generation_config *c)
{
    return c->ignore_eos && !has_limit(c);
}

static bool
is_stop_id_wrong(const ov_genai_generation_config *c)
{
    for (size_t i = 0; i < c->n_stop_ids; i++)
        if (c->stop_ids[i] < 0)
            return true;
    return false;
}

static bool
is_eos_no_stop(const ov_genai_generation_config *c)
{
    return c->eos_token_id >= 0 && !xm_genai_config_has_stop_id(c, c->eos_token_id);
}

static bool
is_without_tokens(const ov_genai_generation_config *c)
{
    return c->max_new_tokens == 0 && !c->echo;
}

static bool
is_min_above_max(const ov_genai_generation_config *c)
{
    return c->min_new_tokens > c->max_new_tokens;
}

static bool
is_outside(float x, float low, float high)
{
    return x < low || x > high;
}

static bool
is_repetition_wrong(const ov_genai_generation_config *c)
{
    return c->repetition_penalty <= 0.0f;
}

static bool
is_presence_wrong(const ov_genai_generation_config *c)
{
    return is_outside(c->presence_penalty, -2.0f, 2.0f);
}

static bool
is_frequency_wrong(const ov_genai_generation_config *c)
{
    return is_outside(c->frequency_penalty, -2.0f, 2.0f);
}

static bool
is_temperature_wrong(const ov_genai_generation_config *c)
{
    return c->do_sample && c->temperature <= 0.0f;
}

static bool
is_top_p_wrong(const ov_genai_generation_config *c)
{
    return c->do_sample && (is_outside(c->top_p, 0.0f, 1.0f) || c->top_p == 0.0f);
}

static bool
is_min_p_wrong(const ov_genai_generation_config *c)
{
    return c->do_sample && (is_outside(c->min_p, 0.0f, 1.0f) || c->min_p == 1.0f);
}

static bool
is_without_text(const ov_genai_generation_config *c)
{
    return c->num_return_sequences == 0;
}

/* Whether it is a beam search: num_beams is above 1. Otherwise the settings of beams are
 * ignored. */
static bool
has_beams(const ov_genai_generation_config *c)
{
    return c->num_beams > 1;
}

static bool
is_beams_wrong(const ov_genai_generation_config *c)
{
    return c->num_beams > MOST_BEAMS;
}

static bool
is_without_group(const ov_genai_generation_config *c)
{
    return c->num_beam_groups == 0;
}

static bool
is_beam_drawn(const ov_genai_generation_config *c)
{
    return c->do_sample;
}

static bool
is_beam_repetition_wrong(const ov_genai_generation_config *c)
{
    return c->repetition_penalty != 1.0f;
}

static bool
is_beam_presence_wrong(const ov_genai_generation_config *c)
{
    return c->presence_penalty != 0.0f;
}

static bool
is_beam_frequency_wrong(const ov_genai_generation_config *c)
{
    return c->frequency_penalty != 0.0f;
}

static bool
is_beam_ngram_wrong(const ov_genai_generation_config *c)
{
    return c->no_repeat_ngram_size == 0;
}

static bool
is_more_than_beams(const ov_genai_generation_config *c)
{
    return c->num_return_sequences > c->num_beams;
}

static bool
is_group_uneven(const ov_genai_generation_config *c)
{
    return c->num_beams % c->num_beam_groups != 0;
}

static bool
is_group_alike(const ov_genai_generation_config *c)
{
    return c->num_beam_groups > 1 && c->diversity_penalty == 0.0f;
}

static bool
is_diverse_alone(const ov_genai_generation_config *c)
{
    return c->num_beam_groups == 1 && c->diversity_penalty != 0.0f;
}

static bool
is_criterion_unknown(const ov_genai_generation_config *c)
{
    return (unsigned)c->stop_criteria > NEVER;
}

static bool
is_greedy_several(const ov_genai_generation_config *c)
{
    return !c->do_sample && !has_beams(c) && c->num_return_sequences > 1;
}

static bool
is_assisted_twice(const ov_genai_generation_config *c)
{
    return c->assistant_confidence_threshold != 0.0f && c->num_assistant_tokens > 0;
}

/* Whether there are several texts. Drafted tokens are possible for one text only. */
static bool
has_several(const ov_genai_generation_config *c)
{
    return has_beams(c) || c->num_return_sequences > 1;
}

static bool
is_assisted_several(const ov_genai_generation_config *c)
{
    return c->num_assistant_tokens > 0 && has_several(c);
}

static bool
is_threshold_several(const ov_genai_generation_config *c)
{
    return c->assistant_confidence_threshold > 0.0f && has_several(c);
}

static bool
is_lookup_half(const ov_genai_generation_config *c)
{
    return c->max_ngram_size > 0 && c->num_assistant_tokens == 0;
}

/* clang-format off */
static const struct rule {
    bool (*is_broken)(const ov_genai_generation_config *c);
    enum name field;
    const char *expected; /* the expected value; without `field` the whole sentence */
    enum name other; /* a field whose value is appended to `expected`, or NONE */
    bool only_with_beams;
} rules[] = {
    { is_endless,           NONE, "nothing would end the text: set eos_token_id, stop_token_ids, stop_strings, max_new_tokens or max_length", NONE, false },
    { is_ignoring_all_ends, AT_ignore_eos,           "false, unless max_new_tokens or max_length is set", NONE, false },
    { is_stop_id_wrong,     NONE, "one of stop_token_ids is negative", NONE, false },
    { is_eos_no_stop,       AT_eos_token_id,         "one of stop_token_ids", NONE, false },
    { is_without_tokens,    AT_max_new_tokens,       "at least 1, unless echo is set", NONE, false },
    { is_min_above_max,     AT_min_new_tokens,       "at most max_new_tokens", AT_max_new_tokens, false },
    { is_repetition_wrong,  AT_repetition_penalty,   "above 0", NONE, false },
    { is_presence_wrong,    AT_presence_penalty,     "within -2..2", NONE, false },
    { is_frequency_wrong,   AT_frequency_penalty,    "within -2..2", NONE, false },
    { is_temperature_wrong, AT_temperature,          "above 0 with do_sample", NONE, false },
    { is_top_p_wrong,       AT_top_p,                "above 0 and at most 1 with do_sample", NONE, false },
    { is_min_p_wrong,       AT_min_p,                "at least 0 and below 1 with do_sample", NONE, false },
    { is_without_text,      AT_num_return_sequences, "at least 1", NONE, false },
    { is_beams_wrong,       AT_num_beams,            "at most 1024", NONE, false },
    { is_without_group,     AT_num_beam_groups,      "at least 1", NONE, true },
    { is_beam_drawn,        AT_num_beams,            "1 with do_sample", NONE, true },
    { is_beam_repetition_wrong, AT_repetition_penalty, "1 with num_beams above 1", NONE, true },
    { is_beam_presence_wrong, AT_presence_penalty,   "0 with num_beams above 1", NONE, true },
    { is_beam_frequency_wrong, AT_frequency_penalty, "0 with num_beams above 1", NONE, true },
    { is_beam_ngram_wrong,  AT_no_repeat_ngram_size, "at least 1 with num_beams above 1", NONE, true },
    { is_more_than_beams,   AT_num_return_sequences, "at most num_beams", AT_num_beams, true },
    { is_group_uneven,      AT_num_beams,            "a multiple of num_beam_groups", AT_num_beam_groups, true },
    { is_group_alike,       AT_diversity_penalty,    "other than 0 with num_beam_groups above 1", NONE, true },
    { is_diverse_alone,     AT_diversity_penalty,    "0 with num_beams above 1 and without num_beam_groups", NONE, true },
    { is_criterion_unknown, AT_stop_criteria,        "EARLY, HEURISTIC or NEVER", NONE, false },
    { is_greedy_several,    AT_num_return_sequences, "1 without do_sample or num_beams", NONE, false },
    { is_assisted_twice,    AT_num_assistant_tokens, "0 with an assistant_confidence_threshold other than 0", NONE, false },
    { is_assisted_several,  AT_num_assistant_tokens, "0 with num_beams or num_return_sequences above 1", NONE, false },
    { is_threshold_several, AT_assistant_confidence_threshold, "0 with num_beams or num_return_sequences above 1", NONE, false },
    { is_lookup_half,       AT_max_ngram_size,       "0 without num_assistant_tokens", NONE, false },
};
/* clang-format on */

static enum xm_status
refuse(const ov_genai_generation_config *c, const struct rule *r, struct xm_error *err)
{
    struct xm_strbuf s = {0};
    if (r->field != NONE) {
        xm_strbuf_printf(&s, "%s is ", fields[r->field].name);
        add_value(&s, c, r->field);
        xm_strbuf_add(&s, ", expected ");
    }
    xm_strbuf_add(&s, r->expected);
    if (r->other != NONE) {
        xm_strbuf_add(&s, ", which is ");
        add_value(&s, c, r->other);
    }
    const char *text = xm_strbuf_ok(&s) ? xm_strbuf_text(&s) : r->expected;
    xm_fail(err, XM_INVALID, "generation config: %s", text);
    xm_strbuf_free(&s);
    return err->status;
}

/* Fails if a number is not finite, so that rules need not consider NaN. */
static enum xm_status
check_finite(const ov_genai_generation_config *c, struct xm_error *err)
{
    struct rule finite = {.expected = "a finite number"};
    for (size_t i = 0; i < XM_ARRAY_LEN(fields); i++) {
        finite.field = (enum name)i;
        if (fields[i].name && fields[i].kind == REAL &&
            !isfinite(*(const float *)((const char *)c + fields[i].offset)))
            return refuse(c, &finite, err);
    }
    return XM_OK;
}

enum xm_status
xm_genai_config_check(const ov_genai_generation_config *c, struct xm_error *err)
{
    XM_TRY(check_finite(c, err));
    for (size_t i = 0; i < XM_ARRAY_LEN(rules); i++) {
        if ((has_beams(c) || !rules[i].only_with_beams) && rules[i].is_broken(c))
            return refuse(c, &rules[i], err);
    }
    return XM_OK;
}
