/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/model_id.h"

#include <stdio.h>
#include <string.h>

#include "plugin/model_facts.h"

/* Writes "7.74M" or "30.53B". */
static void
count_text(uint64_t n, char out[16])
{
    const bool is_large = n >= 1000000000;
    snprintf(out, 16, "%.2f%c", (double)n / (is_large ? 1e9 : 1e6), is_large ? 'B' : 'M');
}

/* Replaces control characters, because the names come from files, and are printed on terminals and
 * in tables. */
static void
make_plain(char *text)
{
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f || *c == '|')
            *c = '?';
    }
}

static void
describe(const char *family, const struct xm_model_facts *f, struct xm_model_id *out)
{
    char all[16], active[16], experts[24] = "";
    count_text(f->parameters, all);
    count_text(f->active_parameters, active);
    if (f->active_parameters != f->parameters)
        snprintf(experts, sizeof(experts), ".A%s", active);
    snprintf(out->text, sizeof(out->text), "%.64s %s%s %s", family, all, experts,
             f->n_formats ? f->formats[0].text : "");
    make_plain(out->text);
    out->bytes = f->bytes;
    out->parameters = f->parameters;
}

void
xm_model_id_find(const struct xm_cli_model *m, struct xm_model_id *out)
{
    struct xm_graph *g = NULL;
    struct xm_model_facts facts = {0};
    const char *family = m->package->facts.model_type;
    *out = (struct xm_model_id){0};
    if (xm_package_read_graph(m->package, NULL, &g, NULL) != XM_OK)
        return;
    if (xm_model_facts(g, &facts, NULL) == XM_OK)
        describe(family[0] ? family : facts.family ? facts.family : g->name, &facts, out);
    xm_graph_destroy(g);
}

/* Compares the encodings of "a" with and without special tokens. The first ids are compared, so
 * that a token which the tokenizer puts after a text is not taken for one before it. */
bool
xm_model_first_token(const struct xm_cli_model *m, int32_t *id)
{
    const struct xm_tokenizer *t = m->package->tokenizer;
    struct xm_token_list with = {0}, without = {0};
    bool has = t && xm_tokenizer_encode(t, "a", 1, true, &with, NULL) == XM_OK &&
               xm_tokenizer_encode(t, "a", 1, false, &without, NULL) == XM_OK &&
               with.n > without.n && without.n && with.ids[0] != without.ids[0];
    if (has)
        *id = with.ids[0];
    xm_token_list_free(&with);
    xm_token_list_free(&without);
    return has;
}
