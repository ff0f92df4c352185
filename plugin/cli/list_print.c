/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/cli/list.h"
#include "plugin/cli/quantity.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/terminal.h"
#include "runtime/util/compiler.h"

enum { MODEL, FAMILY, PARAMETERS, SIZE, WEIGHTS, FITS, N_COLUMNS };
enum { GAP = 2, LEAST = 12 }; /* in columns of the terminal */

/* ---- the table ----------------------------------------------------------------------- */

/* The texts of a row. A model that cannot be used has the reason in place of all columns after
 * MODEL. */
struct cells {
    struct xm_strbuf text[N_COLUMNS];
    /* a sentence after the last column, which does not widen that column */
    struct xm_strbuf note;
    bool is_reason; /* the row consists of its path and its note */
};

static size_t
width_of(const struct xm_strbuf *s)
{
    return xm_terminal_width(xm_strbuf_text(s), s->n);
}

static void
add_parameters(const struct xm_list_row *r, struct xm_strbuf *out)
{
    char all[XM_CLI_QUANTITY], active[XM_CLI_QUANTITY];
    if (!r->parameters)
        xm_strbuf_add(out, "-");
    else if (r->active_parameters && r->active_parameters != r->parameters)
        xm_strbuf_printf(out, "%s, active %s", xm_cli_count_text(r->parameters, all),
                         xm_cli_count_text(r->active_parameters, active));
    else
        xm_strbuf_add(out, xm_cli_count_text(r->parameters, all));
}

static void
add_fits(const struct xm_list_row *r, struct xm_strbuf *out)
{
    char bytes[XM_CLI_QUANTITY];
    if (!r->is_counted)
        xm_strbuf_add(out, "-");
    else if (!r->is_room_known)
        xm_strbuf_printf(out, "needs %s", xm_cli_bytes_text(r->need, bytes));
    else if (r->excess)
        xm_strbuf_printf(out, "no, %s missing", xm_cli_bytes_text(r->excess, bytes));
    else
        xm_strbuf_printf(out, "yes, needs %s", xm_cli_bytes_text(r->need, bytes));
}

static void
fill(const struct xm_list_row *r, struct cells *c)
{
    char bytes[XM_CLI_QUANTITY];
    *c = (struct cells){.is_reason = r->why.text[0] != '\0'};
    xm_cli_add_name(&c->text[MODEL], r->path);
    if (c->is_reason) {
        xm_cli_add_name(&c->note, r->why.text);
        return;
    }
    if (r->no_text.text[0]) {
        xm_strbuf_add(&c->note, "no text generation: ");
        xm_cli_add_name(&c->note, r->no_text.text);
    }
    xm_cli_add_name(&c->text[FAMILY], r->family[0]         ? r->family
                                      : r->architecture[0] ? r->architecture
                                                           : "-");
    if (r->kind == XM_LIST_COMPILED)
        xm_strbuf_add(&c->text[FAMILY], " (compiled)");
    add_parameters(r, &c->text[PARAMETERS]);
    xm_strbuf_add(&c->text[SIZE], r->bytes ? xm_cli_bytes_text(r->bytes, bytes) : "-");
    xm_strbuf_add(&c->text[WEIGHTS], r->weights[0] ? r->weights : "-");
    add_fits(r, &c->text[FITS]);
}

static void
free_cells(struct cells *c)
{
    for (int i = 0; i < N_COLUMNS; i++)
        xm_strbuf_free(&c->text[i]);
    xm_strbuf_free(&c->note);
}

static void
pad(size_t n)
{
    printf("%*s", (int)n, "");
}

/* Returns the end of a text that fits into `width` after "…". */
static const char *
end_of(const struct xm_strbuf *s, size_t width)
{
    const char *text = xm_strbuf_text(s);
    const size_t more = width_of(s) - width + 1;
    size_t skip = xm_terminal_fit(text, s->n, more);
    if (xm_terminal_width(text, skip) < more)
        skip += xm_terminal_fit(text + skip, s->n - skip, 2);
    return text + skip;
}

/* Prints the end of a path, which is more informative than its beginning. */
static void
print_end(const struct xm_strbuf *s, size_t width)
{
    const size_t all = width_of(s);
    if (all <= width) {
        fputs(xm_strbuf_text(s), stdout);
        pad(width - all);
        return;
    }
    const char *end = end_of(s, width);
    const size_t shown = xm_terminal_width(end, strlen(end)) + 1;
    printf("…%s", end);
    pad(width > shown ? width - shown : 0);
}

static void
print_begin(const struct xm_strbuf *s, size_t width)
{
    const char *text = xm_strbuf_text(s);
    if (width_of(s) <= width)
        fputs(text, stdout);
    else if (width > 0)
        printf("%.*s…", (int)xm_terminal_fit(text, s->n, width - 1), text);
}

/* Prints a row; `columns` SIZE_MAX: nothing is wrapped or cut. */
static void
print_cells(const struct cells *c, const size_t widths[N_COLUMNS], size_t columns)
{
    size_t used = widths[MODEL], behind = used;
    print_end(&c->text[MODEL], widths[MODEL]);
    for (int i = FAMILY; i < N_COLUMNS && !c->is_reason; i++) {
        const size_t room = columns > behind + GAP ? columns - behind - GAP : 0;
        const size_t width = widths[i] < room ? widths[i] : room;
        if (!width)
            continue;
        pad(behind + GAP - used);
        print_begin(&c->text[i], width);
        used = behind + GAP +
               (width_of(&c->text[i]) < width ? width_of(&c->text[i]) : width);
        behind += GAP + width;
    }
    if (c->note.n)
        xm_terminal_print_beside(stdout, xm_strbuf_text(&c->note), used, behind + GAP,
                                 columns);
    printf("\n");
}

/* Drops columns for which a narrow terminal has no room beside `model` columns of the path; first
 * those that are least related to whether a model fits. Returns the width of the others. */
static size_t
leave_out(size_t widths[N_COLUMNS], size_t model, size_t columns)
{
    static const int order[] = {PARAMETERS, WEIGHTS, FAMILY, SIZE};
    size_t others = 0;
    for (int i = FAMILY; i < N_COLUMNS; i++)
        others += widths[i] ? GAP + widths[i] : 0;
    for (size_t i = 0; i < XM_ARRAY_LEN(order) && model + others > columns; i++) {
        others -= widths[order[i]] ? GAP + widths[order[i]] : 0;
        widths[order[i]] = 0;
    }
    return others;
}

/* Finds the widths. Paths are cut to leave room for the other columns, to at least a third of the
 * width. */
static void
find_widths(const struct cells *rows, size_t n, size_t columns, size_t widths[N_COLUMNS])
{
    memset(widths, 0, N_COLUMNS * sizeof(*widths));
    for (size_t r = 0; r < n; r++)
        for (int i = 0; i < N_COLUMNS; i++) {
            const size_t w = width_of(&rows[r].text[i]);
            if ((i == MODEL || !rows[r].is_reason) && w > widths[i])
                widths[i] = w;
        }
    const size_t least = columns / 3 > LEAST ? columns / 3 : LEAST;
    const size_t model = widths[MODEL] < least ? widths[MODEL] : least;
    const size_t others = leave_out(widths, model, columns);
    size_t room = columns > others ? columns - others : 0;
    if (room < least)
        room = least;
    if (widths[MODEL] > room)
        widths[MODEL] = room < columns ? room : columns;
}

static void
fill_heading(bool has_device, struct cells *c)
{
    static const char *const texts[N_COLUMNS] = {"model", "family",  "parameters",
                                                 "size",  "weights", "fits"};
    *c = (struct cells){0};
    for (int i = 0; i < N_COLUMNS - !has_device; i++)
        xm_strbuf_add(&c->text[i], texts[i]);
}

static int
compare_ends(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether two models would look equal, because only the ends of their paths are shown. */
static bool
look_alike(const struct cells *rows, size_t n, size_t width)
{
    const char **ends = xm_calloc(n + 1, sizeof(*ends));
    size_t n_ends = 0;
    bool are_alike = false;
    for (size_t i = 0; i < n && ends; i++)
        if (width_of(&rows[i].text[MODEL]) > width)
            ends[n_ends++] = end_of(&rows[i].text[MODEL], width);
    if (n_ends)
        qsort(ends, n_ends, sizeof(*ends), compare_ends);
    for (size_t i = 1; i < n_ends; i++)
        are_alike |= strcmp(ends[i - 1], ends[i]) == 0;
    xm_free(ends);
    return are_alike;
}

/* Prints each path on lines of its own, above the other columns. */
static void
print_below(const struct cells *rows, size_t n, size_t columns)
{
    enum { INDENT = 2 };
    static const struct xm_strbuf nothing = {0};
    size_t widths[N_COLUMNS];
    find_widths(rows, n, SIZE_MAX, widths);
    widths[MODEL] = INDENT - GAP;
    leave_out(widths, widths[MODEL], columns);
    for (size_t i = 0; i < n; i++) {
        struct cells below = rows[i];
        struct xm_strbuf path = {0};
        const struct xm_strbuf *model = &rows[i].text[MODEL];
        xm_lines_wrap(xm_strbuf_text(model), model->n, columns, &path);
        printf("%s\n", xm_strbuf_text(&path));
        xm_strbuf_free(&path);
        below.text[MODEL] = nothing;
        print_cells(&below, widths, columns);
    }
}

void
xm_list_print(const struct xm_list *l, const struct xm_list_wish *wish, size_t columns)
{
    size_t widths[N_COLUMNS];
    struct cells *rows = xm_calloc(l->n + 1, sizeof(*rows));
    if (!rows)
        return;
    fill_heading(wish->has_device, &rows[0]);
    for (size_t i = 0; i < l->n; i++) {
        fill(&l->rows[i], &rows[i + 1]);
        if (!wish->has_device)
            xm_strbuf_clear(&rows[i + 1].text[FITS]);
    }
    find_widths(rows, l->n + 1, columns, widths);
    const bool is_below = look_alike(rows, l->n + 1, widths[MODEL]);
    if (is_below)
        print_below(rows, l->n + 1, columns);
    for (size_t i = 0; i <= l->n; i++) {
        if (!is_below)
            print_cells(&rows[i], widths, columns);
        free_cells(&rows[i]);
    }
    xm_free(rows);
}

/* ---- JSON ---------------------------------------------------------------------------- */

static void
add_text(struct xm_json_out *j, yyjson_mut_val *o, const char *key, const char *text)
{
    if (text[0])
        xm_json_add_text(j, o, key, text, strlen(text));
}

static void
add_known(struct xm_json_out *j, yyjson_mut_val *o, const char *key, uint64_t n)
{
    if (n)
        xm_json_add_whole(j, o, key, n);
}

static void
add_row(struct xm_json_out *j, yyjson_mut_val *list, const struct xm_list_row *r)
{
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    add_text(j, o, "path", r->path);
    add_text(j, o, "kind", xm_list_kind_text(r->kind));
    add_text(j, o, "family", r->family);
    add_text(j, o, "architecture", r->architecture);
    add_known(j, o, "parameters", r->parameters);
    add_known(j, o, "active_parameters", r->active_parameters);
    add_known(j, o, "bytes", r->bytes);
    add_text(j, o, "weights", r->weights);
    if (r->is_counted) {
        xm_json_add_whole(j, o, "context", r->context);
        xm_json_add_whole(j, o, "needed_bytes", r->need);
    }
    if (r->is_room_known) {
        xm_json_add_bool(j, o, "fits", r->excess == 0);
        xm_json_add_whole(j, o, "missing_bytes", r->excess);
    }
    add_text(j, o, "no_text", r->no_text.text);
    add_text(j, o, "reason", r->why.text);
}

enum xm_status
xm_list_print_json(const struct xm_list *l, const char *folder,
                   const struct xm_list_wish *wish, struct xm_error *err)
{
    struct xm_json_out j = {0};
    xm_json_begin(&j);
    add_text(&j, NULL, "folder", folder);
    if (wish->has_device)
        add_text(&j, NULL, "device", wish->device.name);
    yyjson_mut_val *models = xm_json_add_array(&j, NULL, "models");
    for (size_t i = 0; i < l->n; i++)
        add_row(&j, models, &l->rows[i]);
    xm_json_add_bool(&j, NULL, "is_cut", l->is_cut);
    const enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}
