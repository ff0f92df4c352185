/* SPDX-License-Identifier: Apache-2.0
 *
 * Which bytes of a run's texts are content: text of a message, a tool or a document, in which a
 * tokenizer must not find control tokens.
 *
 * The mark of a byte belongs to its address. Texts with content lie in chunks of the run that
 * have one mark for each byte of text beside them; all other texts have no content. So a view
 * (a slice, a part of a split, a stripped text) has its marks without being told, values and
 * comparisons are what they are without marks, and only a function that writes new text has to
 * say where its bytes come from. Marks inside the text itself would be seen by "in", length,
 * slices and comparisons, and ranges kept in each value would have to be cut by each operation.
 */
#ifndef XM_PLUGIN_TEXT_JINJA_CONTENT_H
#define XM_PLUGIN_TEXT_JINJA_CONTENT_H

#include "plugin/text/jinja/value.h"

/* Text in the making. `marks` has a byte for each byte of text, 1: content; it may be shorter:
 * the bytes behind it are no content. Zero-initialise to use. */
struct xm_jinja_buffer {
    struct xm_strbuf text, marks;
};

struct xm_jinja_chunk {
    char *text, *marks;
    size_t used, capacity;
    struct xm_jinja_chunk *next;
};

/* New text of a value, filled from its beginning. */
struct xm_jinja_space {
    char *text, *marks; /* marks NULL: no content */
    size_t used;
};

/* The marks of a text of this run, one for each of its bytes; NULL: none of them is content. */
const char *xm_jinja_marks_of(const struct xm_jinja_run *r, struct xm_slice text);

/* Appends a text of this run with its marks. Text that is appended to b->text by other means is
 * no content until xm_jinja_mark_from() marks the bytes from number `from` on. */
void xm_jinja_add(const struct xm_jinja_run *r, struct xm_jinja_buffer *b,
                  struct xm_slice text);
void xm_jinja_mark_from(struct xm_jinja_buffer *b, size_t from);
void xm_jinja_buffer_free(struct xm_jinja_buffer *b);

/* Fails when the buffer failed or is larger than a text may be. */
enum xm_status xm_jinja_check_size(struct xm_jinja_run *r,
                                   const struct xm_jinja_buffer *b);
/* The text of `b` as a value; frees `b`, also on failure. */
enum xm_status xm_jinja_take_text(struct xm_jinja_run *r, struct xm_jinja_buffer *b,
                                  struct xm_jinja_value *out);
/* A copy of a text with the marks that it has in this run / as content throughout. */
enum xm_status xm_jinja_copy_text(struct xm_jinja_run *r, struct xm_slice text,
                                  struct xm_jinja_value *out);
enum xm_status xm_jinja_copy_content(struct xm_jinja_run *r, struct xm_slice text,
                                     struct xm_jinja_value *out);

/* Room for n bytes, which xm_jinja_put() fills. */
enum xm_status xm_jinja_new_space(struct xm_jinja_run *r, uint64_t n, bool content,
                                  struct xm_jinja_space *out);
void xm_jinja_put(const struct xm_jinja_run *r, struct xm_jinja_space *space,
                  struct xm_slice text);

#endif
