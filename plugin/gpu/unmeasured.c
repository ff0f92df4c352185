/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/unmeasured.h"

#include <stdlib.h>
#include <string.h>

#include "plugin/gpu/describe.h"
#include "primitives/measured_rows.h"
#include "primitives/timed_problem.h"

struct found {
    struct xm_timed_problem problem;
    double bytes; /* that all layers with this problem read for a token */
};

struct list {
    struct found *items; /* owned */
    size_t n, capacity;
};

static bool
is_settled(const struct xm_engine *engine, const struct xm_timed_problem *p)
{
    size_t n;
    const struct xm_timed_step *steps = xm_timed_steps(&n);
    for (size_t i = 0; i < n; i++) {
        if (steps[i].kind != p->kind)
            continue;
        const struct xm_problem_class c = xm_timed_class(p, steps[i].is_down);
        if (!xm_measured_row_is_settled(engine, xm_timed_table(steps[i].step), &c))
            return false;
    }
    return true;
}

static enum xm_status
add_line(struct list *list, const char *line, struct xm_error *err)
{
    struct xm_timed_problem p;
    size_t i = 0;
    XM_TRY(xm_timed_problem_parse_step(line, &p, err));
    while (i < list->n && strcmp(list->items[i].problem.text, p.text) != 0)
        i++;
    if (i == list->n) {
        struct found *grown =
            xm_grow(list->items, &list->capacity, list->n + 1, sizeof(*grown));
        if (!grown)
            return xm_no_memory(err, "the steps that are not measured");
        list->items = grown;
        grown[list->n++] = (struct found){p, 0};
    }
    list->items[i].bytes += xm_timed_problem_bytes(&p);
    return XM_OK;
}

static enum xm_status
add_lines(struct list *list, const struct xm_strbuf *lines, struct xm_error *err)
{
    struct xm_strbuf line = {0};
    enum xm_status s =
        xm_strbuf_ok(lines) ? XM_OK : xm_no_memory(err, "the steps of a program");
    for (const char *at = xm_strbuf_text(lines); s == XM_OK && *at;) {
        const size_t n = strcspn(at, "\n");
        xm_strbuf_clear(&line);
        xm_strbuf_add_n(&line, at, n);
        s = xm_strbuf_ok(&line) ? add_line(list, xm_strbuf_text(&line), err)
                                : xm_no_memory(err, "the steps of a program");
        at += n + (at[n] == '\n');
    }
    xm_strbuf_free(&line);
    return s;
}

/* Orders by bytes, most first; problems with equal bytes by their text, so that the order is always
 * the same. */
static int
by_bytes(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->problem.text, y->problem.text);
}

enum xm_status
xm_program_unmeasured(const struct xm_program *p, struct xm_strbuf *out,
                      struct xm_error *err)
{
    struct list list = {0};
    enum xm_status s = XM_OK;
    for (uint32_t i = 0; i < p->n_steps && s == XM_OK; i++) {
        struct xm_strbuf lines = {0};
        xm_step_problems(p, &p->steps[i], &lines);
        s = add_lines(&list, &lines, err);
        xm_strbuf_free(&lines);
    }
    if (list.n)
        qsort(list.items, list.n, sizeof(*list.items), by_bytes);
    for (size_t i = 0; i < list.n && s == XM_OK; i++) {
        if (!is_settled(p->engine, &list.items[i].problem))
            xm_strbuf_printf(out, "%s%s", out->n ? "\n" : "", list.items[i].problem.text);
    }
    xm_free(list.items);
    return s;
}
