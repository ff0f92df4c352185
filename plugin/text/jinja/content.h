/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracks which bytes of a template's texts are content: text of a message, a tool or a document, in
 * which the tokenizer must not recognise control tokens.
 *
 * The mark of a byte is found by the byte's address. Text with content is stored in chunks of
 * memory that have one mark for each byte; text outside of these chunks has no content. A view of a
 * text (a slice, a part of a split, a stripped text) therefore has its marks without further work,
 * and values and comparisons do not depend on marks. Only a function that writes new text has to
 * say where its bytes come from. Two alternatives were rejected: marks inside the text would be
 * seen by "in", length, slices and comparisons; ranges kept in each value would have to be adapted
 * by each operation.
 */
#ifndef XM_PLUGIN_TEXT_JINJA_CONTENT_H
#define XM_PLUGIN_TEXT_JINJA_CONTENT_H

#include "plugin/text/jinja/value.h"

/* Text under construction. `marks` has one byte for each byte of text, 1 for content. It may be
 * shorter than the text: the remaining bytes are not content. Zero-initialise to use. */
struct xm_jinja_buffer {
    struct xm_strbuf text, marks;
};

/* A chunk of text and its marks, `capacity` bytes each, in the run's arena. */
struct xm_jinja_chunk {
    char *text, *marks;
    size_t used, capacity;
    struct xm_jinja_chunk *next;
};

/* Memory for the text of a new value; it is filled from its beginning. */
struct xm_jinja_space {
    char *text, *marks; /* marks NULL: nothing in it is content */
    size_t used;
};

/* Returns the marks of a text of this run, one for each byte; NULL: no byte is content. */
const char *xm_jinja_marks_of(const struct xm_jinja_run *r, struct xm_slice text);

/* Appends a text of this run with its marks. Text that is appended to b->text directly is not
 * content, unless xm_jinja_mark_from() marks the bytes from offset `from` on. */
void xm_jinja_add(const struct xm_jinja_run *r, struct xm_jinja_buffer *b,
                  struct xm_slice text);
void xm_jinja_mark_from(struct xm_jinja_buffer *b, size_t from);
void xm_jinja_buffer_free(struct xm_jinja_buffer *b);

/* Fails when the buffer ran out of memory or exceeds the limit on the bytes of a text. */
enum xm_status xm_jinja_check_size(struct xm_jinja_run *r,
                                   const struct xm_jinja_buffer *b);
/* Makes the text of `b` a value; frees `b`, also on failure. */
enum xm_status xm_jinja_take_text(struct xm_jinja_run *r, struct xm_jinja_buffer *b,
                                  struct xm_jinja_value *out);
/* xm_jinja_copy_text copies a text into the run with the marks that it has in this run;
 * xm_jinja_copy_content copies it and marks all of it as content. */
enum xm_status xm_jinja_copy_text(struct xm_jinja_run *r, struct xm_slice text,
                                  struct xm_jinja_value *out);
enum xm_status xm_jinja_copy_content(struct xm_jinja_run *r, struct xm_slice text,
                                     struct xm_jinja_value *out);

/* Allocates n bytes, which xm_jinja_put() fills; `content`: with memory for marks. */
enum xm_status xm_jinja_new_space(struct xm_jinja_run *r, uint64_t n, bool content,
                                  struct xm_jinja_space *out);
void xm_jinja_put(const struct xm_jinja_run *r, struct xm_jinja_space *space,
                  struct xm_slice text);

#endif
