/* SPDX-License-Identifier: Apache-2.0
 *
 * Jinja templates, as far as chat templates use them.
 *
 *     text -> lexer -> tokens -> parser -> tree      tree + variables -> run -> text
 *
 * The language is Jinja 3.1 in the set-up that chat templates are written for: trim_blocks
 * and lstrip_blocks are on, break and continue exist, values cannot be changed in place,
 * tojson writes plain JSON, {% generation %} marks text and changes nothing.
 *
 * Not done: include, import, extends and block; autoescape; the filters pprint, random, urlize
 * and wordwrap, and lipsum(); integers beyond 64 bits and complex numbers. Upper and lower case
 * are Unicode's simple mappings. {% do %} is there, though not everybody's set-up has it.
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

/* What one run may use; a template that needs more fails with a sentence. */
struct xm_jinja_limits {
    uint64_t steps;      /* nodes evaluated, items looked at       */
    size_t memory_bytes; /* values that the run makes              */
    size_t output_bytes; /* of the result, and of each captured text */
    unsigned depth;      /* nested nodes, calls and values         */
};
extern const struct xm_jinja_limits xm_jinja_default_limits;

/* A name that the template sees. The value is not referred to after the run. */
struct xm_jinja_variable {
    struct xm_slice name;
    yyjson_val *value;
    /* its strings are content, but for roles of messages and types of parts */
    bool is_content;
};

/* Reads a template; ill-formed UTF-8 is read as U+FFFD. Sentences begin with "line L,
 * column C: ", columns count bytes. The text is not referred to afterwards. */
enum xm_status xm_jinja_parse(const char *text, size_t n, struct xm_jinja_template **out,
                              struct xm_error *err);
void xm_jinja_free(struct xm_jinja_template *tmpl); /* NULL is allowed */

/* Appends the text that the template makes of the variables; of equal names the last one
 * counts. `limits` NULL: the default. `marks` (may be NULL) gets a byte for each byte of text:
 * 1 where the byte comes from content, however the template cut, joined or wrote it, else 0. A
 * template may be run by many threads at once. On failure `out` holds a part. */
enum xm_status xm_jinja_render(const struct xm_jinja_template *tmpl,
                               const struct xm_jinja_variable *variables,
                               size_t n_variables, const struct xm_jinja_limits *limits,
                               struct xm_strbuf *out, struct xm_strbuf *marks,
                               struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
