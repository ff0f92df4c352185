/* SPDX-License-Identifier: Apache-2.0
 *
 * Renders Jinja templates, as far as chat templates need the language.
 *
 *     text -> lexer -> tokens -> parser -> tree      tree + variables -> run -> text
 *
 * The language is Jinja 3.1 as Hugging Face's transformers configures it: trim_blocks and
 * lstrip_blocks are on, break and continue exist, values are immutable, tojson does not escape
 * HTML, and {% generation %} has no effect. {% do %} exists as well.
 *
 * All filters and tests of Jinja are implemented; the filter random makes the same choices in each
 * run. Upper and lower case are Unicode's simple mappings (one character to one).
 *
 * Not supported: include, import, extends, block and autoescape, which are refused by name;
 * lipsum(); integers beyond 64 bits and complex numbers.
 */
#ifndef XM_PLUGIN_TEXT_JINJA_JINJA_H
#define XM_PLUGIN_TEXT_JINJA_JINJA_H

#include <yyjson.h>

#include "runtime/util/slice.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_jinja_template;

/* Limits of one run. A template that exceeds one fails with an error message, so that a malicious
 * template cannot hang the process or exhaust its memory. */
struct xm_jinja_limits {
    uint64_t steps;      /* nodes evaluated plus items visited */
    size_t memory_bytes; /* memory of all values that the run creates */
    size_t output_bytes; /* size of the result, and of each captured text */
    unsigned depth;      /* nesting depth of nodes, calls and values */
};
extern const struct xm_jinja_limits xm_jinja_default_limits;

/* A variable of the template. The value is not used after the run. */
struct xm_jinja_variable {
    struct xm_slice name;
    yyjson_val *value;
    /* Its strings are content (content.h), except message roles and types of content parts. */
    bool is_content;
};

/* Parses a template of n bytes, which is copied; ill-formed UTF-8 is read as U+FFFD. Error messages
 * begin with "line L, column C: "; columns count bytes from 1. */
enum xm_status xm_jinja_parse(const char *text, size_t n, struct xm_jinja_template **out,
                              struct xm_error *err);
void xm_jinja_free(struct xm_jinja_template *tmpl); /* NULL is allowed */

/* Renders the template and appends the text to `out`. If variables have equal names, the last one
 * is used. `limits` NULL: xm_jinja_default_limits. Appends to `marks` (may be NULL) one byte for
 * each byte of text: 1 if the byte comes from content, even if the template cut, joined or
 * converted it; else 0. Many threads may render one template at once. On failure `out` has a part
 * of the text. */
enum xm_status xm_jinja_render(const struct xm_jinja_template *tmpl,
                               const struct xm_jinja_variable *variables,
                               size_t n_variables, const struct xm_jinja_limits *limits,
                               struct xm_strbuf *out, struct xm_strbuf *marks,
                               struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
