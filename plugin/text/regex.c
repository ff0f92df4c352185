/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "plugin/text/regex.h"

#include <pcre2.h>

#include "runtime/util/log.h"
#include "runtime/util/utf8.h"

enum {
    MAX_PATTERN_BYTES = 64 * 1024,
    MAX_STEPS = 50 * 1000 * 1000, /* of one match: about a second */
    MAX_MATCH_KIB = 256 * 1024,   /* KiB of backtracking frames of one match */
    MAX_REASON = 120
};

struct xm_regex {
    pcre2_general_context *general;
    pcre2_match_context *limits;
    pcre2_code *code;
    struct xm_shown shown; /* beginning of the pattern, for error messages */
};

static void *
regex_malloc(PCRE2_SIZE bytes, void *ctx)
{
    (void)ctx;
    return xm_malloc(bytes);
}

static void
regex_free(void *p, void *ctx)
{
    (void)ctx;
    xm_free(p);
}

static enum xm_status
fail_pattern(const struct xm_regex *regex, int code, size_t at, struct xm_error *err)
{
    PCRE2_UCHAR reason[MAX_REASON];
    pcre2_get_error_message(code, reason, sizeof(reason));
    bool no_memory = code == PCRE2_ERROR_HEAP_FAILED || code == PCRE2_ERROR_NOMEMORY;
    return xm_fail(err, no_memory ? XM_NO_MEMORY : XM_INVALID,
                   "regular expression '%s': %s at byte %zu", regex->shown.text,
                   (const char *)reason, at);
}

static enum xm_status
compile(struct xm_regex *regex, struct xm_slice pattern, uint32_t options,
        struct xm_error *err)
{
    regex->general = pcre2_general_context_create(regex_malloc, regex_free, NULL);
    regex->limits = pcre2_match_context_create(regex->general);
    pcre2_compile_context *rules = pcre2_compile_context_create(regex->general);
    if (!regex->general || !regex->limits || !rules) {
        pcre2_compile_context_free(rules);
        return xm_no_memory(err, "a regular expression");
    }
    pcre2_set_match_limit(regex->limits, MAX_STEPS);
    pcre2_set_heap_limit(regex->limits, MAX_MATCH_KIB);
    pcre2_set_max_pattern_length(rules, MAX_PATTERN_BYTES);
    pcre2_set_newline(rules, PCRE2_NEWLINE_LF);
    int code;
    PCRE2_SIZE at;
    regex->code =
        pcre2_compile((PCRE2_SPTR)pattern.text, pattern.n, options, &code, &at, rules);
    pcre2_compile_context_free(rules);
    if (!regex->code)
        return fail_pattern(regex, code, at, err);
    /* A failure is ignored: without just-in-time compiler, the interpreter does the same more
     * slowly. */
    if (!xm_debug_on(XM_DEBUG_NO_JIT))
        pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
    return XM_OK;
}

static enum xm_status
create(struct xm_slice pattern, uint32_t options, struct xm_regex **out,
       struct xm_error *err)
{
    *out = NULL;
    struct xm_regex *regex = xm_calloc(1, sizeof(*regex));
    if (!regex)
        return xm_no_memory(err, "a regular expression");
    regex->shown = xm_utf8_shown(pattern);
    enum xm_status status = compile(regex, pattern, options, err);
    if (status != XM_OK) {
        xm_regex_free(regex);
        return status;
    }
    *out = regex;
    return XM_OK;
}

enum xm_status
xm_regex_create(struct xm_slice pattern, struct xm_regex **out, struct xm_error *err)
{
    struct xm_strbuf pcre = {0};
    *out = NULL;
    enum xm_status status = xm_regex_translate(pattern, &pcre, err);
    if (status == XM_OK)
        status = create(xm_slice_of(xm_strbuf_text(&pcre), pcre.n),
                        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, out, err);
    xm_strbuf_free(&pcre);
    return status;
}

enum xm_status
xm_regex_create_literal(struct xm_slice text, struct xm_regex **out, struct xm_error *err)
{
    *out = NULL;
    if (text.n == 0)
        return xm_fail(err, XM_UNSUPPORTED, "the pattern is empty");
    return create(text, PCRE2_UTF | PCRE2_LITERAL, out, err);
}

void
xm_regex_free(struct xm_regex *regex)
{
    if (!regex)
        return;
    pcre2_code_free(regex->code);
    pcre2_match_context_free(regex->limits);
    pcre2_general_context_free(regex->general);
    xm_free(regex);
}

static bool
add_span(struct xm_span_list *list, size_t start, size_t end, bool is_match)
{
    struct xm_span *grown =
        xm_grow(list->spans, &list->capacity, list->n + 1, sizeof(*grown));
    if (!grown)
        return false;
    list->spans = grown;
    list->spans[list->n++] = (struct xm_span){start, end, is_match};
    return true;
}

/* Finds the next match at or after byte `from`. Returns PCRE2's code. After an empty match the
 * caller must advance by a character. */
static int
match_once(const struct xm_regex *regex, struct xm_slice text, size_t from,
           pcre2_match_data *data)
{
    PCRE2_SPTR subject = (PCRE2_SPTR)text.text;
    /* Without NO_UTF_CHECK each call would check the whole text again. */
    int rc = pcre2_match(regex->code, subject, text.n, from, PCRE2_NO_UTF_CHECK, data,
                         regex->limits);
    /* the interpreter has its frames on the heap instead */
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(regex->code, subject, text.n, from,
                         PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, regex->limits);
    return rc;
}

static size_t
character_end(struct xm_slice text, size_t at)
{
    at++;
    while (at < text.n && ((uint8_t)text.text[at] & 0xc0) == 0x80)
        at++;
    return at;
}

static enum xm_status
find_spans(const struct xm_regex *regex, struct xm_slice text, pcre2_match_data *data,
           struct xm_span_list *out, struct xm_error *err)
{
    size_t done = 0; /* end of the spans so far */
    for (size_t from = 0; from <= text.n;) {
        int rc = match_once(regex, text, from, data);
        if (rc == PCRE2_ERROR_NOMATCH)
            break;
        if (rc < 0)
            return fail_pattern(regex, rc, from, err);
        const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(data);
        size_t start = ends[0], end = ends[1];
        if (start > end || start < done) /* possible with \K inside a lookaround */
            return xm_fail(
                err, XM_UNSUPPORTED,
                "a match of a regular expression ends before it starts, at byte %zu",
                from);
        from = end > start ? end : character_end(text, end);
        if (end == start && end == done && out->n > 0)
            continue; /* an empty match directly behind a match does not count */
        if (start > done && !add_span(out, done, start, false))
            return xm_no_memory(err, "%zu pieces", out->n);
        if (!add_span(out, start, end, true))
            return xm_no_memory(err, "%zu pieces", out->n);
        done = end;
    }
    if (done < text.n && !add_span(out, done, text.n, false))
        return xm_no_memory(err, "%zu pieces", out->n);
    return XM_OK;
}

enum xm_status
xm_regex_spans(const struct xm_regex *regex, struct xm_slice text,
               struct xm_span_list *out, struct xm_error *err)
{
    out->n = 0;
    if (text.n == 0)
        return XM_OK;
    pcre2_match_data *data = pcre2_match_data_create(1, regex->general);
    if (!data)
        return xm_no_memory(err, "a match");
    enum xm_status status = find_spans(regex, text, data, out, err);
    pcre2_match_data_free(data);
    return status;
}

enum xm_status
xm_regex_replace(const struct xm_regex *regex, struct xm_slice text, struct xm_slice with,
                 struct xm_strbuf *out, struct xm_error *err)
{
    struct xm_span_list list = {0};
    enum xm_status status = xm_regex_spans(regex, text, &list, err);
    for (size_t i = 0; status == XM_OK && i < list.n; i++) {
        const struct xm_span *span = &list.spans[i];
        if (span->is_match)
            xm_strbuf_add_n(out, with.text, with.n);
        else
            xm_strbuf_add_n(out, text.text + span->start, span->end - span->start);
    }
    xm_span_list_free(&list);
    return status;
}

void
xm_span_list_free(struct xm_span_list *list)
{
    xm_free(list->spans);
    *list = (struct xm_span_list){0};
}
