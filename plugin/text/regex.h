/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions of tokenizer files, over PCRE2.
 *
 * The files are written for Oniguruma's Ruby syntax. A construct that PCRE2 spells differently is
 * translated (regex_dialect.c); a construct that PCRE2 does not have is refused. A compiled pattern
 * is immutable and may be used by many threads. Matching is limited in steps and memory, so that a
 * pattern that backtracks exponentially fails instead of hanging.
 */
#ifndef XM_PLUGIN_TEXT_REGEX_H
#define XM_PLUGIN_TEXT_REGEX_H

#include "runtime/util/slice.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_regex;

/* Bytes [start, end) of a text: a match of the pattern, or the text between two matches. */
struct xm_span {
    size_t start, end;
    bool is_match;
};

/* Zero-initialise to use. Keep one list for many calls, which reuse its memory. */
struct xm_span_list {
    struct xm_span *spans; /* owned */
    size_t n, capacity;
};

enum xm_status xm_regex_create(struct xm_slice pattern, struct xm_regex **out,
                               struct xm_error *err);
/* Creates a pattern that matches `text` literally. XM_UNSUPPORTED: the text is empty. */
enum xm_status xm_regex_create_literal(struct xm_slice text, struct xm_regex **out,
                                       struct xm_error *err);
void xm_regex_free(struct xm_regex *regex); /* NULL is allowed */

/* Cuts `text` (well-formed UTF-8) into consecutive spans, which together cover it: the matches and
 * the text between them. An empty match gives an empty span. An empty text has no spans. */
enum xm_status xm_regex_spans(const struct xm_regex *regex, struct xm_slice text,
                              struct xm_span_list *out, struct xm_error *err);

/* Appends `text` to `out` with every match replaced by `with`, taken literally. */
enum xm_status xm_regex_replace(const struct xm_regex *regex, struct xm_slice text,
                                struct xm_slice with, struct xm_strbuf *out,
                                struct xm_error *err);

void xm_span_list_free(struct xm_span_list *list);

/* Appends the PCRE2 spelling of an Oniguruma pattern. */
enum xm_status xm_regex_translate(struct xm_slice pattern, struct xm_strbuf *out,
                                  struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
