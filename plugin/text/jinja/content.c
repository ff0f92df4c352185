/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/jinja/content.h"

#include "plugin/text/jinja/run_state.h"

enum { FIRST_CHUNK = 256 }; /* capacity of the first chunk in bytes */

const char *
xm_jinja_marks_of(const struct xm_jinja_run *r, struct xm_slice text)
{
    const uintptr_t at = (uintptr_t)text.text;
    for (const struct xm_jinja_chunk *c = r->content; c && text.n > 0; c = c->next) {
        const uintptr_t begin = (uintptr_t)c->text;
        if (at < begin || at - begin >= c->used)
            continue;
        const char *marks = c->marks + (at - begin);
        return memchr(marks, 1, text.n) ? marks : NULL;
    }
    return NULL;
}

static void
add_zeros(struct xm_strbuf *b, size_t n)
{
    static const char zeros[64];
    for (; n > 0; n -= n < sizeof(zeros) ? n : sizeof(zeros))
        xm_strbuf_add_n(b, zeros, n < sizeof(zeros) ? n : sizeof(zeros));
}

void
xm_jinja_add(const struct xm_jinja_run *r, struct xm_jinja_buffer *b,
             struct xm_slice text)
{
    const char *marks = xm_jinja_marks_of(r, text);
    const size_t from = b->text.n;
    xm_strbuf_add_n(&b->text, text.text, text.n);
    if (!marks || b->text.failed)
        return;
    add_zeros(&b->marks, from - b->marks.n);
    xm_strbuf_add_n(&b->marks, marks, text.n);
}

void
xm_jinja_mark_from(struct xm_jinja_buffer *b, size_t from)
{
    if (b->text.failed)
        return;
    add_zeros(&b->marks, from > b->marks.n ? from - b->marks.n : 0);
    while (b->marks.n < b->text.n && !b->marks.failed)
        xm_strbuf_add_n(&b->marks, "\1", 1);
}

void
xm_jinja_buffer_free(struct xm_jinja_buffer *b)
{
    xm_strbuf_free(&b->text);
    xm_strbuf_free(&b->marks);
}

enum xm_status
xm_jinja_check_size(struct xm_jinja_run *r, const struct xm_jinja_buffer *b)
{
    if (!xm_strbuf_ok(&b->text) || !xm_strbuf_ok(&b->marks))
        return xm_no_memory(r->err, "a template's output");
    if (b->text.n > r->limits->output_bytes)
        return xm_jinja_fail(r, "the template writes more than %zu bytes",
                             r->limits->output_bytes);
    return XM_OK;
}

static enum xm_status
find_chunk(struct xm_jinja_run *r, uint64_t n, struct xm_jinja_chunk **out)
{
    struct xm_jinja_chunk *last = r->content;
    uint64_t capacity = last ? 2 * (uint64_t)last->capacity : FIRST_CHUNK;
    *out = last;
    if (last && last->capacity - last->used >= n)
        return XM_OK;
    capacity = n > capacity ? n : capacity;
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(**out), out));
    XM_TRY(xm_jinja_alloc(r, capacity, 1, &(*out)->text));
    XM_TRY(xm_jinja_alloc(r, capacity, 1, &(*out)->marks));
    (*out)->capacity = (size_t)capacity;
    (*out)->next = last;
    r->content = *out;
    return XM_OK;
}

enum xm_status
xm_jinja_new_space(struct xm_jinja_run *r, uint64_t n, bool content,
                   struct xm_jinja_space *out)
{
    struct xm_jinja_chunk *chunk = NULL;
    *out = (struct xm_jinja_space){0};
    if (!content || n == 0)
        return xm_jinja_alloc(r, n, 1, &out->text);
    XM_TRY(find_chunk(r, n, &chunk));
    out->text = chunk->text + chunk->used;
    out->marks = chunk->marks + chunk->used;
    chunk->used += (size_t)n;
    return XM_OK;
}

void
xm_jinja_put(const struct xm_jinja_run *r, struct xm_jinja_space *space,
             struct xm_slice text)
{
    const char *marks = space->marks ? xm_jinja_marks_of(r, text) : NULL;
    if (text.n > 0)
        memcpy(space->text + space->used, text.text, text.n);
    if (marks)
        memcpy(space->marks + space->used, marks, text.n);
    space->used += text.n;
}

enum xm_status
xm_jinja_take_text(struct xm_jinja_run *r, struct xm_jinja_buffer *b,
                   struct xm_jinja_value *out)
{
    struct xm_jinja_space space;
    const size_t n = b->text.n;
    enum xm_status status = xm_jinja_check_size(r, b);
    if (status == XM_OK)
        status = xm_jinja_new_space(r, n, b->marks.n > 0, &space);
    if (status == XM_OK) {
        if (n > 0)
            memcpy(space.text, b->text.text, n);
        if (space.marks)
            memcpy(space.marks, b->marks.text, b->marks.n);
        *out = xm_jinja_text(xm_slice_of(space.text, n));
    }
    xm_jinja_buffer_free(b);
    return status;
}

enum xm_status
xm_jinja_copy_text(struct xm_jinja_run *r, struct xm_slice text,
                   struct xm_jinja_value *out)
{
    struct xm_jinja_space space;
    XM_TRY(xm_jinja_new_space(r, text.n, xm_jinja_marks_of(r, text) != NULL, &space));
    xm_jinja_put(r, &space, text);
    *out = xm_jinja_text(xm_slice_of(space.text, text.n));
    return XM_OK;
}

enum xm_status
xm_jinja_copy_content(struct xm_jinja_run *r, struct xm_slice text,
                      struct xm_jinja_value *out)
{
    struct xm_jinja_space space;
    XM_TRY(xm_jinja_new_space(r, text.n, true, &space));
    if (text.n > 0) {
        memcpy(space.text, text.text, text.n);
        memset(space.marks, 1, text.n);
    }
    *out = xm_jinja_text(xm_slice_of(space.text, text.n));
    return XM_OK;
}
