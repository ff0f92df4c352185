/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/measured_rows.h"

#include <stdio.h>
#include <string.h>

#include "runtime/kept.h"

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

bool
xm_measured_row(const struct xm_engine *engine, const struct xm_variant_table *table,
                const struct xm_problem_class *problems, size_t *row)
{
    const struct xm_config *config = xm_engine_config(engine);
    char text[XM_KEPT_TEXT];
    if (!problems->text[0] || !config->tuned_kernels ||
        !xm_kept_text_load(config->cache_dir, xm_engine_info(engine),
                           kept_name(table, problems).text, text))
        return false;
    for (*row = 0; *row < table->n; ++*row) {
        if (strcmp(table->rows[*row].name, text) == 0)
            return true;
    }
    return false;
}

bool
xm_measured_row_keep(const struct xm_engine *engine, const struct xm_variant_table *table,
                     const struct xm_problem_class *problems, size_t row)
{
    return problems->text[0] &&
           xm_kept_text_store(xm_engine_config(engine)->cache_dir, xm_engine_info(engine),
                              kept_name(table, problems).text, table->rows[row].name);
}
