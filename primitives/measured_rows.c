/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/measured_rows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/driver_files.h"
#include "runtime/kept.h"
#include "runtime/util/unfinished.h"

/* Kept in place of a row's name if no row can be timed. */
#define NO_ROW "-"

struct name {
    char text[192];
};

static struct name
kept_name(const struct xm_variant_table *table, const struct xm_problem_class *problems)
{
    struct name name;
    snprintf(name.text, sizeof(name.text), "row of %s, %s", table->step, problems->text);
    return name;
}

static bool
store(const struct xm_engine *engine, const char *what, const char *text)
{
    return xm_kept_text_store(xm_engine_config(engine)->cache_dir, xm_engine_info(engine),
                              what, text);
}

static bool
load(const struct xm_engine *engine, const char *what, char text[XM_KEPT_TEXT])
{
    return xm_kept_text_load(xm_engine_config(engine)->cache_dir, xm_engine_info(engine),
                             what, text);
}

/* ---- choices ------------------------------------------------------------------------- */

/* Reads the name of the kept row, or NO_ROW. False: nothing is kept, the class is empty, or
 * XM_TUNED_KERNELS=NO. */
static bool
kept_text(const struct xm_engine *engine, const struct xm_variant_table *table,
          const struct xm_problem_class *problems, char text[XM_KEPT_TEXT])
{
    return problems->text[0] && xm_engine_config(engine)->tuned_kernels &&
           load(engine, kept_name(table, problems).text, text);
}

static bool
find_row(const struct xm_variant_table *table, const char *name, size_t *row)
{
    for (*row = 0; *row < table->n; ++*row) {
        if (strcmp(table->rows[*row].name, name) == 0)
            return true;
    }
    return false;
}

bool
xm_measured_row(const struct xm_engine *engine, const struct xm_variant_table *table,
                const struct xm_problem_class *problems, size_t *row)
{
    char text[XM_KEPT_TEXT];
    return kept_text(engine, table, problems, text) && find_row(table, text, row);
}

bool
xm_measured_row_keep(const struct xm_engine *engine, const struct xm_variant_table *table,
                     const struct xm_problem_class *problems, size_t row)
{
    return problems->text[0] &&
           store(engine, kept_name(table, problems).text, table->rows[row].name);
}

bool
xm_measured_row_keep_none(const struct xm_engine *engine,
                          const struct xm_variant_table *table,
                          const struct xm_problem_class *problems)
{
    return problems->text[0] && store(engine, kept_name(table, problems).text, NO_ROW);
}

bool
xm_measured_row_is_settled(const struct xm_engine *engine,
                           const struct xm_variant_table *table,
                           const struct xm_problem_class *problems)
{
    const struct xm_config *config = xm_engine_config(engine);
    char text[XM_KEPT_TEXT];
    size_t row;
    if (!problems->text[0] || !config->tuned_kernels || !config->cache_dir[0] ||
        !xm_driver_files_may_store())
        return true;
    return kept_text(engine, table, problems, text) &&
           (strcmp(text, NO_ROW) == 0 || find_row(table, text, &row));
}

/* ---- trials -------------------------------------------------------------------------- */

static const char trial[] = "row on trial";

/* The text of a note: "moe_down=moe_down_sg". */
struct trial_text {
    char text[XM_KEPT_TEXT];
};

static struct trial_text
trial_text(const struct xm_variant_table *table, size_t row)
{
    struct trial_text text;
    snprintf(text.text, sizeof(text.text), "%s=%s", table->step, table->rows[row].name);
    return text;
}

static struct name
note_name(const char *what, const char *row)
{
    struct name name;
    snprintf(name.text, sizeof(name.text), "row that %s: %.*s", what, XM_KEPT_TEXT, row);
    return name;
}

static const char ended[] = "ended its process", wrong[] = "computes wrong results";

void
xm_row_trial_begin(const struct xm_engine *engine, const struct xm_variant_table *table,
                   size_t row, struct xm_row_trial *t)
{
    const char *dir = xm_engine_config(engine)->cache_dir;
    if (!xm_kept_path(dir, xm_engine_info(engine), trial, t->path, sizeof(t->path)))
        t->path[0] = '\0';
    if (!t->path[0])
        return;
    (void)store(engine, trial, trial_text(table, row).text);
    xm_unfinished_add(t->path);
}

void
xm_row_trial_end(struct xm_row_trial *t)
{
    if (!t->path[0])
        return;
    unlink(t->path);
    xm_unfinished_drop(t->path);
}

void
xm_row_trials_open(const struct xm_engine *engine)
{
    char text[XM_KEPT_TEXT];
    struct xm_row_trial t;
    if (!load(engine, trial, text) ||
        !xm_kept_path(xm_engine_config(engine)->cache_dir, xm_engine_info(engine), trial,
                      t.path, sizeof(t.path)))
        return;
    (void)store(engine, note_name(ended, text).text, text);
    unlink(t.path);
}

bool
xm_row_trial_is_lost(const struct xm_engine *engine, const struct xm_variant_table *table,
                     size_t row)
{
    char text[XM_KEPT_TEXT];
    return load(engine, note_name(ended, trial_text(table, row).text).text, text);
}

/* ---- wrong results ------------------------------------------------------------------- */

/* Several steps may have the row; they share the note. */
bool
xm_row_keep_wrong(const struct xm_engine *engine, const struct xm_variant_table *table,
                  size_t row)
{
    const char *name = table->rows[row].name;
    return store(engine, note_name(wrong, name).text, name);
}

bool
xm_row_is_wrong(const struct xm_engine *engine, const struct xm_variant_table *table,
                size_t row)
{
    char text[XM_KEPT_TEXT];
    return load(engine, note_name(wrong, table->rows[row].name).text, text);
}
