/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of a chat. Their names, ranges and texts are those of the program's options.
 *
 *     /set or an option  >  the recommendation of the model's files  >  the default
 *
 * Each number in sampling.def is a setting; texts and lists can only be set by options.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/chat.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/suggest.h"
#include "runtime/util/number.h"
#include "runtime/util/utf8.h"

enum kind { REAL, WHOLE, SEED };

/* clang-format off */
#define AT(member) offsetof(struct xm_chat_args, member)
enum { NO_SAMPLING = -1 };
static const struct setting {
    /* others: other names that users know, separated by spaces; may be NULL */
    const char *name, *others;
    enum kind kind;
    size_t at; /* offset of a float, uint64_t or const char * in the arguments */
    int sampling; /* row of sampling.def, or NO_SAMPLING */
    uint64_t open; /* WHOLE: the value that means "not given" */
    double unsaid; /* default without a recommendation */
    const char *zero; /* what 0 means, shown for it; NULL: shows 0 */
} rows[XM_CHAT_N_SETTINGS] = {
#define ROW_REAL(...)      ROW(REAL, __VA_ARGS__)
#define ROW_WHOLE(...)     ROW(WHOLE, __VA_ARGS__)
#define ROW_COUNT(...)     ROW(WHOLE, __VA_ARGS__)
#define ROW_SEED(...)      ROW(SEED, __VA_ARGS__)
#define ROW_BIAS(...)
#define ROW_SET(...)
#define ROW_SEQUENCES(...)
#define ROW(kind, member, unsaid, zero, option, aliases) \
    { option, aliases, kind, AT(generation.member), XM_AT_##member, UINT64_MAX, unsaid, zero },
#define SAMPLING(kind, member, draws, least, most, unsaid, zero, option, value, aliases, ...) \
    ROW_##kind(member, unsaid, zero, option, aliases)
#include "plugin/text/sampling.def"
    { "context", "ctx-size", WHOLE, AT(generation.context), NO_SAMPLING, 0,   0.0, NULL },
    { "tokens", "max-tokens n n-predict max-new-tokens",
                             WHOLE, AT(tokens),             NO_SAMPLING, 0, 512.0, NULL },
};
/* clang-format on */

static float *
real_of(struct xm_chat_args *a, const struct setting *row)
{
    return (float *)(void *)((char *)a + row->at);
}

static uint64_t *
whole_of(struct xm_chat_args *a, const struct setting *row)
{
    return (uint64_t *)(void *)((char *)a + row->at);
}

/* Whether the setting matters only if tokens are sampled. */
static bool
is_sampling_setting(const struct setting *row)
{
    return row->sampling != NO_SAMPLING && row->sampling != XM_AT_temperature &&
           xm_sampling_rows[row->sampling].draws;
}

static bool
is_seed_random(const struct xm_chat_args *a)
{
    const char *seed = a->generation.seed;
    return !seed || strcmp(seed, "-1") == 0;
}

/* ---- from options and package -------------------------------------------------------- */

void
xm_chat_settings_open(struct xm_chat_args *a)
{
    for (size_t i = 0; i < XM_CHAT_N_SETTINGS; i++) {
        if (rows[i].kind == REAL)
            *real_of(a, &rows[i]) = NAN; /* a value that no option accepts */
        else if (rows[i].kind == WHOLE)
            *whole_of(a, &rows[i]) = rows[i].open;
    }
}

static bool
is_open(const struct xm_chat_args *args, const struct setting *row)
{
    struct xm_chat_args a = *args;
    switch (row->kind) {
    case REAL:
        return isnan(*real_of(&a, row));
    case WHOLE:
        return *whole_of(&a, row) == row->open;
    case SEED:
        break;
    }
    return a.generation.seed == NULL;
}

int
xm_chat_settings_check(const struct xm_chat_args *a, struct xm_chat_settings *s)
{
    struct xm_error err = {0};
    return xm_cli_sampling(&a->generation, &s->sampling, &err) == XM_OK
               ? XM_EXIT_OK
               : xm_cli_usage("%s", err.text);
}

static double
recommended(const struct setting *row, const struct xm_sampling *of)
{
    if (row->sampling < 0)
        return row->unsaid;
    const struct xm_sampling_row *is = &xm_sampling_rows[row->sampling];
    return xm_sampling_is_number(is) ? xm_sampling_get(of, is) : row->unsaid;
}

int
xm_chat_settings_settle(struct xm_chat_args *a, const struct xm_package *package,
                        struct xm_sampling_lists *lists, struct xm_chat_settings *s)
{
    struct xm_error err = {0};
    const uint64_t seed = s->sampling.seed;
    const bool is_drawn = xm_cli_sampling_option(&a->generation) != NULL;
    for (size_t i = 0; i < XM_CHAT_N_SETTINGS; i++) {
        const struct setting *row = &rows[i];
        double value = recommended(row, &package->generation.sampling);
        const bool open = is_open(a, row), said = value != row->unsaid;
        if (!said && is_drawn && row->sampling == XM_AT_temperature)
            value = (double)XM_CLI_DEFAULT_TEMPERATURE;
        s->source[i] = !open ? XM_CHAT_OPTION : said ? XM_CHAT_MODEL : XM_CHAT_DEFAULT;
        if (open && row->kind == REAL)
            *real_of(a, row) = (float)value;
        else if (open && row->kind == WHOLE)
            *whole_of(a, row) = value > 0.0 ? (uint64_t)value : 0;
    }
    const int code = xm_chat_settings_check(a, s);
    s->sampling.seed = seed;
    return code != XM_EXIT_OK || xm_cli_sampling_lists(&a->generation, package, lists,
                                                       &s->sampling, &err) == XM_OK
               ? code
               : xm_cli_usage("%s", err.text);
}

/* ---- showing ------------------------------------------------------------------------- */

static void
add_value(const struct xm_chat *c, const struct setting *row, struct xm_strbuf *out)
{
    struct xm_chat_args a = *c->args;
    const uint64_t n = row->kind == WHOLE ? *whole_of(&a, row) : 0;
    if (row->kind == SEED)
        xm_strbuf_printf(out, "%" PRIu64, c->settings.sampling.seed);
    else if (row->kind == REAL && (*real_of(&a, row) != 0.0f || !row->zero))
        xm_strbuf_printf(out, "%g", (double)*real_of(&a, row));
    else if (row->kind == WHOLE && row->at == offsetof(struct xm_chat_args, tokens))
        xm_strbuf_printf(out, n == UINT64_MAX ? "-1" : "%" PRIu64, n);
    else if (row->kind == WHOLE &&
             row->at == offsetof(struct xm_chat_args, generation.context))
        xm_strbuf_printf(out, "%" PRIu64, xm_chat_context(c));
    else if (n || !row->zero)
        xm_strbuf_printf(out, "%" PRIu64, n);
    else
        xm_strbuf_add(out, row->zero);
}

static const char *
source_text(const struct xm_chat *c, size_t i)
{
    switch (c->settings.source[i]) {
    case XM_CHAT_DEFAULT:
        return rows[i].kind == SEED ? "chosen at random" : "default";
    case XM_CHAT_OPTION:
        return "given as an option";
    case XM_CHAT_MODEL:
        return c->model->package->reader->sampling;
    case XM_CHAT_SET:
        break;
    }
    return "set in this chat";
}

static void
show(const struct xm_chat *c, size_t i)
{
    struct xm_strbuf value = {0};
    struct xm_lines o = xm_lines_to(stderr);
    add_value(c, &rows[i], &value);
    xm_lines_add(&o, "  %-19s%-24s%s\n", rows[i].name, xm_strbuf_text(&value),
                 source_text(c, i));
    xm_lines_end(&o);
    xm_strbuf_free(&value);
}

/* Shows --grammar or --json-schema, which no setting can change. */
static void
show_grammar(const struct xm_chat *c)
{
    enum { SHOWN = 22 };
    const struct xm_cli_generation *g = &c->args->generation;
    const char *text = g->grammar ? g->grammar : g->json_schema;
    if (!c->args->grammar || !text)
        return;
    const size_t n = strcspn(text, "\n");
    const struct xm_shown shown = xm_utf8_shown(xm_slice_of(text, n < SHOWN ? n : SHOWN));
    fprintf(stderr, "  %-19s%-24sgiven as an option\n",
            g->grammar ? "grammar" : "json-schema", shown.text);
}

/* Returns the number as it was typed: 0.7 instead of 0.699999988. */
static double
as_given(float x)
{
    struct xm_strbuf text = {0};
    double near = (double)x;
    xm_strbuf_printf(&text, "%g", near);
    if (xm_strbuf_ok(&text))
        near = xm_parse_double(xm_strbuf_text(&text), NULL);
    xm_strbuf_free(&text);
    return near;
}

/* Returns the number that 0 stands for, such as 0.1 for xtc-threshold; 0: it stands for a word. */
static double
number_of(const char *zero)
{
    char *end;
    const double x = xm_parse_double(zero, &end);
    return end != zero && *end == '\0' ? x : 0.0;
}

void
xm_chat_settings_add_json(const struct xm_chat_args *args,
                          const struct xm_chat_settings *s, struct xm_json_out *j)
{
    struct xm_chat_args a = *args;
    yyjson_mut_val *o = xm_json_add_object(j, NULL, "sampling");
    for (size_t i = 0; i < XM_CHAT_N_SETTINGS; i++) {
        if (rows[i].sampling == NO_SAMPLING || rows[i].kind == SEED)
            continue;
        const double stands_for = rows[i].zero ? number_of(rows[i].zero) : 0.0;
        const float real = rows[i].kind == REAL ? *real_of(&a, &rows[i]) : 0.0f;
        const uint64_t whole = rows[i].kind == WHOLE ? *whole_of(&a, &rows[i]) : 0;
        if (rows[i].kind == REAL)
            xm_json_add_real(j, o, rows[i].name,
                             real == 0.0f ? stands_for : as_given(real));
        else
            xm_json_add_whole(j, o, rows[i].name,
                              whole == 0 ? (uint64_t)stands_for : whole);
    }
    if (s->sampling.temperature > 0.0f)
        xm_json_add_whole(j, NULL, "seed", s->sampling.seed);
}

/* ---- /set ---------------------------------------------------------------------------- */

/* Returns the row with this name, in which underscores count as dashes. XM_CHAT_N_SETTINGS: none; a
 * sentence was printed. */
static size_t
find_setting(const char *name, size_t n)
{
    char word[64] = "";
    for (size_t i = 0; i < n && i + 1 < sizeof(word); i++)
        word[i] = name[i] == '_' ? '-' : name[i];
    struct xm_suggestion near = xm_suggest_for(word, strlen(word));
    for (size_t i = 0; i < XM_CHAT_N_SETTINGS; i++) {
        if (strcmp(word, rows[i].name) == 0 ||
            (rows[i].others && xm_list_has(rows[i].others, ' ', word, strlen(word))))
            return i;
        xm_suggest(&near, rows[i].name);
    }
    if (near.best)
        fprintf(stderr, "there is no setting %s: did you mean %s?\n", word, near.best);
    else
        fprintf(stderr, "there is no setting %s; /set lists them\n", word);
    return XM_CHAT_N_SETTINGS;
}

/* Parses a value as the option with the setting's name would. */
static enum xm_status
parse(const struct xm_chat *c, const struct setting *row, const char *value,
      struct xm_chat_args *out, struct xm_error *err)
{
    static const struct xm_cli_option tokens[] = {
        {'n', "tokens", XM_CLI_LIMIT, offsetof(struct xm_chat_args, tokens), "N", NULL}};
    const struct xm_cli_spec spec = {.usage = "",
                                     .about = "",
                                     .common = xm_cli_generation_options,
                                     .n_common = XM_CLI_N_GENERATION_OPTIONS,
                                     .own = tokens,
                                     .n_own = XM_ARRAY_LEN(tokens)};
    struct xm_strbuf word = {0};
    bool help;
    xm_strbuf_printf(&word, "--%s", row->name);
    char *argv[] = {NULL, word.text, (char *)(uintptr_t)value};
    *out = *c->args;
    enum xm_status s = xm_strbuf_ok(&word) ? xm_cli_parse(&spec, XM_ARRAY_LEN(argv), argv,
                                                          out, &help, err)
                                           : xm_no_memory(err, "a setting");
    xm_strbuf_free(&word);
    return s;
}

static void
copy_value(const struct setting *row, const struct xm_chat_args *from,
           struct xm_chat_args *to)
{
    static const size_t bytes[] = {
        [REAL] = sizeof(float), [WHOLE] = sizeof(uint64_t), [SEED] = sizeof(char *)};
    memcpy((char *)to + row->at, (const char *)from + row->at, bytes[row->kind]);
}

/* Makes a copy of the settings with this one changed. *is_first: it was reset to its value at the
 * start of the chat. */
static enum xm_status
find_value(const struct xm_chat *c, const struct setting *row, const char *value,
           struct xm_chat_args *out, bool *is_first, struct xm_error *err)
{
    static const struct xm_chat_args zero;
    *is_first = strcmp(value, "default") == 0;
    const bool is_zero = row->zero && strcmp(value, row->zero) == 0;
    if (!*is_first && !is_zero)
        return parse(c, row, value, out, err);
    *out = *c->args;
    copy_value(row, *is_first ? &c->first_args : &zero, out);
    return XM_OK;
}

static enum xm_status
change(struct xm_chat *c, size_t i, const char *value, struct xm_error *err)
{
    struct xm_chat_settings *now = &c->settings;
    const struct xm_chat_settings *first = &c->first_settings;
    const bool is_seed = rows[i].kind == SEED;
    struct xm_chat_args a;
    struct xm_sampling sampling;
    char warning[XM_CLI_WARNING];
    bool is_first;
    XM_TRY(find_value(c, &rows[i], value, &a, &is_first, err));
    XM_TRY(xm_cli_sampling(&a.generation, &sampling, err));
    XM_TRY(
        xm_sampling_take_lists(&c->lists, c->model->package->tokenizer, &sampling, err));
    if (!is_seed) {
        sampling.seed = now->sampling.seed;
    } else if (is_first) { /* the same seed, even if it was random */
        sampling.seed = first->sampling.seed;
    } else { /* copied, because the typed line will be freed */
        snprintf(now->seed, sizeof(now->seed), "%s", value);
        a.generation.seed = now->seed;
    }
    *c->args = a;
    now->sampling = sampling;
    now->source[i] = is_first                        ? first->source[i]
                     : is_seed && is_seed_random(&a) ? XM_CHAT_DEFAULT
                                                     : XM_CHAT_SET;
    if (rows[i].sampling != NO_SAMPLING)
        xm_session_set_sampling(c->session, &sampling);
    show(c, i);
    if (is_sampling_setting(&rows[i]) && !is_first && sampling.temperature == 0.0f)
        fprintf(stderr, "(no effect while the temperature is 0: /set temp 0.8)\n");
    if (xm_cli_beyond_training(xm_chat_context(c), c->model->package->facts.context,
                               warning))
        xm_say("%s", warning);
    return XM_OK;
}

/* Prints the sentence "option --NAME takes …" of the option's parser, with the typed name instead
 * of "option --NAME". */
static void
say_refused(const char *typed, size_t n, const char *sentence)
{
    static const char option[] = "option --";
    const size_t k = sizeof(option) - 1;
    if (strncmp(sentence, option, k) == 0)
        xm_say("/set %.*s%s", (int)n, typed, sentence + k + strcspn(sentence + k, " "));
    else
        xm_say("%s", sentence);
}

bool
xm_chat_set(struct xm_chat *c, const char *words)
{
    static const char blanks[] = " \t\n=";
    const size_t n = strcspn(words, blanks);
    const char *value = words + n + strspn(words + n, blanks);
    struct xm_error err = {0};
    if (n == 0) {
        for (size_t i = 0; i < XM_CHAT_N_SETTINGS; i++)
            show(c, i);
        show_grammar(c);
        return true;
    }
    const size_t i = find_setting(words, n);
    if (i == XM_CHAT_N_SETTINGS)
        return false;
    if (!*value) {
        show(c, i);
    } else if (change(c, i, value, &err) != XM_OK) {
        say_refused(words, n, err.text);
        return false;
    }
    return true;
}
