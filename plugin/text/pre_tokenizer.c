/* SPDX-License-Identifier: Apache-2.0
 *
 * Not supported: UnicodeScripts, FixedLength and RandomChunk, which no supported model uses.
 */
#include "plugin/text/pre_tokenizer.h"

#include "plugin/text/byte_level.h"
#include "plugin/text/component.h"
#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

/* The pattern of ByteLevel's CUT: contractions, letters, digits, other characters, white space. */
const char xm_byte_level_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* The matches of this pattern become pieces for the type Whitespace: words and runs of other
 * characters. The reference uses another regex library for this type: its \w is that of Unicode
 * (UTS #18), not that of Oniguruma. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}"
static const char whitespace_pattern[] = "[" WORD "]+|[^" WORD "\\s]+";

static const char punctuation_pattern[] = "[!-/:-@\\[-`{-~\\p{P}]";

static enum xm_status
add_step(struct xm_pre_tokenizer *out, enum xm_pre_step_kind kind,
         struct xm_pre_step **step, struct xm_error *err)
{
    if (out->n == XM_MAX_STEPS)
        return xm_fail(err, XM_UNSUPPORTED, "more than %d steps", XM_MAX_STEPS);
    *step = &out->steps[out->n++];
    (*step)->kind = kind;
    return XM_OK;
}

static enum xm_status
add_cut(struct xm_pre_tokenizer *out, const char *pattern,
        enum xm_split_behavior behavior, bool invert, struct xm_error *err)
{
    struct xm_pre_step *step = NULL;
    XM_TRY(add_step(out, XM_PRE_CUT, &step, err));
    step->behavior = behavior;
    step->invert = invert;
    return xm_regex_create(xm_slice_of(pattern, strlen(pattern)), &step->regex, err);
}

enum xm_status
xm_pre_tokenizer_add_cut(struct xm_pre_tokenizer *pre, const char *pattern,
                         struct xm_error *err)
{
    return add_cut(pre, pattern, XM_SPLIT_ISOLATED, false, err);
}

enum xm_status
xm_pre_tokenizer_add_white_space(struct xm_pre_tokenizer *pre, struct xm_error *err)
{
    return add_cut(pre, "\\s", XM_SPLIT_REMOVED, false, err);
}

enum xm_status
xm_pre_tokenizer_add_bert(struct xm_pre_tokenizer *pre, struct xm_error *err)
{
    XM_TRY(xm_pre_tokenizer_add_white_space(pre, err));
    return xm_pre_tokenizer_add_cut(pre, punctuation_pattern, err);
}

enum xm_status
xm_pre_tokenizer_add_bytes(struct xm_pre_tokenizer *pre, struct xm_error *err)
{
    struct xm_pre_step *step = NULL;
    return add_step(pre, XM_PRE_BYTES, &step, err);
}

static enum xm_status
add_prefix(struct xm_pre_tokenizer *out, struct xm_slice text, bool first_only,
           struct xm_error *err)
{
    struct xm_pre_step *step = NULL;
    XM_TRY(add_step(out, XM_PRE_PREFIX, &step, err));
    step->first_only = first_only;
    step->text_bytes = text.n;
    memcpy(step->text, text.text, text.n);
    return XM_OK;
}

/* Reads a string of one character; *out keeps its value if the member is absent. */
static enum xm_status
load_character(yyjson_val *value, const char *key, struct xm_slice *out,
               struct xm_error *err)
{
    int32_t code;
    XM_TRY(xm_json_text(value, key, out, err));
    if (!out->text || out->n == 0 || xm_utf8_next(*out, &code) != out->n)
        return xm_fail(err, XM_INVALID, "'%s' is not one character", key);
    return XM_OK;
}

static enum xm_status
load_behavior(yyjson_val *value, enum xm_split_behavior *out, struct xm_error *err)
{
    struct xm_slice name = {0};
    XM_TRY(xm_json_text(value, "behavior", &name, err));
    if (name.text)
        *out = xm_split_behavior_parse(name);
    if (*out == XM_SPLIT_BEHAVIOR_COUNT)
        return xm_fail(err, XM_INVALID, "'behavior' is missing or unknown");
    return XM_OK;
}

static enum xm_status
load_split(yyjson_val *value, struct xm_pre_tokenizer *out, struct xm_error *err)
{
    struct xm_pre_step *step = NULL;
    XM_TRY(add_step(out, XM_PRE_CUT, &step, err));
    step->behavior = XM_SPLIT_BEHAVIOR_COUNT;
    XM_TRY(load_behavior(value, &step->behavior, err));
    XM_TRY(xm_json_bool(value, "invert", &step->invert, err));
    return xm_pattern_load(value, "pattern", &step->regex, err);
}

static enum xm_status
load_byte_level(yyjson_val *value, struct xm_pre_tokenizer *out, struct xm_error *err)
{
    bool add_prefix_space = true, use_regex = true;
    XM_TRY(xm_json_bool(value, "add_prefix_space", &add_prefix_space, err));
    XM_TRY(xm_json_bool(value, "use_regex", &use_regex, err));
    if (add_prefix_space)
        XM_TRY(add_prefix(out, xm_slice_of(" ", 1), false, err));
    if (use_regex)
        XM_TRY(xm_pre_tokenizer_add_cut(out, xm_byte_level_pattern, err));
    return xm_pre_tokenizer_add_bytes(out, err);
}

/* Reads whether a prefix is put before pieces. Older files have add_prefix_space, newer ones
 * prepend_scheme. */
static enum xm_status
load_prepend_scheme(yyjson_val *value, bool *prepend, bool *first_only,
                    struct xm_error *err)
{
    struct xm_slice scheme = {0};
    *prepend = true;
    XM_TRY(xm_json_bool(value, "add_prefix_space", prepend, err));
    XM_TRY(xm_json_text(value, "prepend_scheme", &scheme, err));
    *first_only = xm_slice_equal(scheme, xm_slice_of("first", 5));
    if (!scheme.text)
        return XM_OK;
    *prepend = !xm_slice_equal(scheme, xm_slice_of("never", 5));
    if (*prepend && !*first_only && !xm_slice_equal(scheme, xm_slice_of("always", 6)))
        return xm_fail(err, XM_INVALID, "'prepend_scheme' is unknown");
    return XM_OK;
}

static enum xm_status
load_metaspace(yyjson_val *value, struct xm_pre_tokenizer *out, struct xm_error *err)
{
    struct xm_slice mark = {"\xe2\x96\x81", 3};
    bool prepend, first_only, split = true;
    struct xm_pre_step *step = NULL;
    XM_TRY(load_character(value, "replacement", &mark, err));
    XM_TRY(load_prepend_scheme(value, &prepend, &first_only, err));
    XM_TRY(xm_json_bool(value, "split", &split, err));
    XM_TRY(add_step(out, XM_PRE_REPLACE, &step, err));
    step->text_bytes = mark.n;
    memcpy(step->text, mark.text, mark.n);
    XM_TRY(xm_regex_create_literal(xm_slice_of(" ", 1), &step->regex, err));
    if (prepend)
        XM_TRY(add_prefix(out, mark, first_only, err));
    if (!split)
        return XM_OK;
    XM_TRY(add_step(out, XM_PRE_CUT, &step, err));
    step->behavior = XM_SPLIT_MERGED_WITH_NEXT;
    return xm_regex_create_literal(mark, &step->regex, err);
}

static enum xm_status
load_digits(yyjson_val *value, struct xm_pre_tokenizer *out, struct xm_error *err)
{
    bool individual = false;
    XM_TRY(xm_json_bool(value, "individual_digits", &individual, err));
    return add_cut(out, "\\p{N}", individual ? XM_SPLIT_ISOLATED : XM_SPLIT_CONTIGUOUS,
                   false, err);
}

static enum xm_status
load_punctuation(yyjson_val *value, struct xm_pre_tokenizer *out, struct xm_error *err)
{
    enum xm_split_behavior behavior = XM_SPLIT_ISOLATED;
    XM_TRY(load_behavior(value, &behavior, err));
    return add_cut(out, punctuation_pattern, behavior, false, err);
}

static enum xm_status
load_whitespace(yyjson_val *value, struct xm_pre_tokenizer *out, struct xm_error *err)
{
    (void)value;
    return add_cut(out, whitespace_pattern, XM_SPLIT_REMOVED, true, err);
}

static enum xm_status
load_whitespace_split(yyjson_val *value, struct xm_pre_tokenizer *out,
                      struct xm_error *err)
{
    (void)value;
    return xm_pre_tokenizer_add_white_space(out, err);
}

static enum xm_status
load_bert(yyjson_val *value, struct xm_pre_tokenizer *out, struct xm_error *err)
{
    (void)value;
    return xm_pre_tokenizer_add_bert(out, err);
}

static enum xm_status
load_delimiter(yyjson_val *value, struct xm_pre_tokenizer *out, struct xm_error *err)
{
    struct xm_slice delimiter = {0};
    struct xm_pre_step *step = NULL;
    XM_TRY(load_character(value, "delimiter", &delimiter, err));
    XM_TRY(add_step(out, XM_PRE_CUT, &step, err));
    step->behavior = XM_SPLIT_REMOVED;
    return xm_regex_create_literal(delimiter, &step->regex, err);
}

static const struct pre_type {
    const char *name;
    enum xm_status (*load)(yyjson_val *value, struct xm_pre_tokenizer *out,
                           struct xm_error *err);
} types[] = {
    /* clang-format off */
    { "Split",              load_split            },
    { "ByteLevel",          load_byte_level       },
    { "Metaspace",          load_metaspace        },
    { "Digits",             load_digits           },
    { "Punctuation",        load_punctuation      },
    { "Whitespace",         load_whitespace       },
    { "WhitespaceSplit",    load_whitespace_split },
    { "CharDelimiterSplit", load_delimiter        },
    { "BertPreTokenizer",   load_bert             },
    /* clang-format on */
};

static enum xm_status
load_type(const void *type, yyjson_val *value, void *out, struct xm_error *err)
{
    return ((const struct pre_type *)type)->load(value, out, err);
}

static const struct xm_component component = {
    .name = "pre-tokenizer",
    .list = "pretokenizers",
    .types = types,
    .n_types = XM_ARRAY_LEN(types),
    .type_bytes = sizeof(types[0]),
    .load = load_type,
};

enum xm_status
xm_pre_tokenizer_load(yyjson_val *value, struct xm_pre_tokenizer *out,
                      struct xm_error *err)
{
    return xm_component_load(&component, value, out, err);
}

void
xm_pre_tokenizer_free(struct xm_pre_tokenizer *pre)
{
    for (size_t i = 0; i < pre->n; i++)
        xm_regex_free(pre->steps[i].regex);
    *pre = (struct xm_pre_tokenizer){0};
}

static enum xm_status
cut(const struct xm_pre_step *step, struct xm_slice piece, bool first,
    struct xm_span_list *spans, struct xm_pieces *out, struct xm_error *err)
{
    XM_TRY(xm_regex_spans(step->regex, piece, spans, err));
    for (size_t i = 0; step->invert && i < spans->n; i++)
        spans->spans[i].is_match = !spans->spans[i].is_match;
    xm_split_merge(spans, step->behavior);
    if (first && spans->n > 0 && spans->spans[0].is_match)
        out->at_start = false;
    for (size_t i = 0; i < spans->n; i++) {
        const struct xm_span *span = &spans->spans[i];
        if (!span->is_match)
            xm_pieces_add(out,
                          xm_slice_of(piece.text + span->start, span->end - span->start));
    }
    return XM_OK;
}

static enum xm_status
run_on_piece(const struct xm_pre_step *step, struct xm_slice piece, bool first,
             struct xm_span_list *spans, struct xm_pieces *out, struct xm_error *err)
{
    struct xm_slice text = xm_slice_of(step->text, step->text_bytes);
    switch (step->kind) {
    case XM_PRE_CUT:
        return cut(step, piece, first, spans, out, err);
    case XM_PRE_REPLACE:
        XM_TRY(xm_regex_replace(step->regex, piece, text, &out->text, err));
        break;
    case XM_PRE_PREFIX:
        if ((first || !step->first_only) && !xm_slice_starts_with(piece, text))
            xm_strbuf_add_n(&out->text, text.text, text.n);
        xm_strbuf_add_n(&out->text, piece.text, piece.n);
        break;
    case XM_PRE_BYTES:
        xm_byte_level_encode(piece, &out->text);
        break;
    }
    xm_pieces_close(out);
    return XM_OK;
}

static enum xm_status
run_step(const struct xm_pre_step *step, const struct xm_pieces *in,
         struct xm_pieces *out, struct xm_error *err)
{
    struct xm_span_list spans = {0};
    enum xm_status status = XM_OK;
    xm_pieces_clear(out);
    out->at_start = in->at_start;
    for (size_t i = 0; status == XM_OK && i < in->n; i++)
        status = run_on_piece(step, xm_pieces_get(in, i), in->at_start && i == 0, &spans,
                              out, err);
    xm_span_list_free(&spans);
    if (status == XM_OK && !xm_pieces_ok(out))
        status = xm_no_memory(err, "%zu pieces", in->n);
    return status;
}

enum xm_status
xm_pre_tokenizer_run(const struct xm_pre_tokenizer *pre, struct xm_pieces *pieces,
                     struct xm_pieces *scratch, struct xm_error *err)
{
    for (size_t i = 0; i < pre->n; i++) {
        XM_TRY(run_step(&pre->steps[i], pieces, scratch, err));
        struct xm_pieces swap = *pieces;
        *pieces = *scratch;
        *scratch = swap;
    }
    return XM_OK;
}
