/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "plugin/text/gguf/gguf_parts.h"

/* ---- ids ----------------------------------------------------------------------------- */

static void
add_end(struct xm_generation_config *c, int32_t id)
{
    if (id >= 0 && !xm_generation_config_is_eos(c, id))
        c->eos[c->n_eos++] = id;
}

/* ---- recommendations ----------------------------------------------------------------- */

static bool
recommends(const struct xm_gguf *g)
{
    bool any = false;
    for (size_t i = 0; i < XM_N_SAMPLING; i++)
        any |= xm_sampling_rows[i].gguf && xm_gguf_has(g, xm_sampling_rows[i].gguf);
    return any;
}

/* Reads the recommended sampling parameters. A value of a wrong type or out of range is ignored. */
static void
load_sampling(const struct xm_gguf *g, struct xm_sampling *out)
{
    out->temperature = 1.0f;
    for (size_t i = 0; i < XM_N_SAMPLING; i++) {
        const struct xm_sampling_row *row = &xm_sampling_rows[i];
        float x = NAN; /* outside of every range */
        int64_t whole = -1;
        if (!row->gguf || !xm_sampling_is_number(row))
            continue;
        const bool is_real = row->kind == XM_SAMPLING_REAL;
        if (is_real)
            xm_gguf_f32(g, row->gguf, &x, NULL);
        else
            xm_gguf_i64(g, row->gguf, &whole, NULL);
        xm_sampling_recommend(out, row, is_real ? (double)x : (double)whole);
    }
}

/* ---- ids that are never chosen -------------------------------------------------------- */

/* Reads the ids that are never chosen; ids that no token can have are skipped. */
static enum xm_status
load_suppressed(const struct xm_gguf *g, struct xm_token_list *out, struct xm_error *err)
{
    static const char key[] = "tokenizer.ggml.suppress_tokens";
    struct xm_gguf_values list;
    if (!xm_gguf_has(g, key))
        return XM_OK;
    XM_TRY(xm_gguf_list(g, key, &list, err));
    for (uint64_t i = 0; i < list.n; i++) {
        int64_t id = 0;
        XM_TRY(xm_gguf_i64_at(&list, i, &id, err));
        if (id >= 0 && id <= INT32_MAX && !xm_token_list_add(out, (int32_t)id))
            return xm_no_memory(err, "key '%s'", key);
    }
    return XM_OK;
}

enum xm_status
xm_gguf_generation(const struct xm_gguf *g, struct xm_generation_config *out,
                   struct xm_error *err)
{
    struct xm_gguf_special special;
    xm_generation_config_init(out);
    if (recommends(g))
        load_sampling(g, &out->sampling);
    XM_TRY(load_suppressed(g, &out->suppressed, err));
    if (!xm_gguf_has(g, "tokenizer.ggml.model"))
        return XM_OK;
    XM_TRY(xm_gguf_find_special(g, &special, err));
    add_end(out, special.eos);
    add_end(out, special.eot);
    add_end(out, special.eom);
    out->bos = special.bos;
    out->pad = special.pad;
    return XM_OK;
}
