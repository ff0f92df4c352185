/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for the dynamic dimensions of a language model.
 *
 * IR files write '?' for every dynamic dimension, so that nothing could be proved equal.
 * What exporters of text generation agree on is in this table, and only here; a dimension
 * that no row speaks of gets a symbol of its own, "<input>.<i>", which is always safe.
 */
#include <string.h>

#include "plugin/readers/ir_records.h"
#include "runtime/util/compiler.h"
#include "runtime/util/strbuf.h"
#include "transformations/graph/symbols.h"

enum meaning { OWN, BATCH, TOKENS, PAST, PAST_AND_TOKENS };

/* clang-format off */
static const struct convention {
    const char *input;
    uint32_t rank;
    enum meaning dim[3];
} conventions[] = {
    { "input_ids",      2, { BATCH, TOKENS          } },
    { "inputs_embeds",  3, { BATCH, TOKENS          } },
    { "token_type_ids", 2, { BATCH, TOKENS          } },
    { "position_ids",   2, { BATCH, TOKENS          } },
    { "position_ids",   3, { OWN,   BATCH,  TOKENS  } }, /* a row an axis */
    { "attention_mask", 2, { BATCH, PAST_AND_TOKENS } },
    { "beam_idx",       1, { BATCH                  } },
};
/* clang-format on */

static bool
fits_symbol(char c, bool first)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    return letter || (!first && ((c >= '0' && c <= '9') || c == '.'));
}

/* "<owner>.<i>"; what graph text could not read back is written as its code, "_x2f_". */
static struct xm_dim
own_symbol(struct xm_graph *g, const char *owner, uint32_t i)
{
    struct xm_strbuf name = {0};
    for (const char *c = owner; *c; c++) {
        if (fits_symbol(*c, c == owner))
            xm_strbuf_add_n(&name, c, 1);
        else
            xm_strbuf_printf(&name, "_x%02x_", (unsigned char)*c);
    }
    xm_strbuf_printf(&name, ".%u", i);
    struct xm_dim d = xm_dim_const(0);
    if (xm_strbuf_ok(&name))
        d = xm_dim_symbol(&g->dims, xm_strbuf_text(&name));
    else
        g->dims.failed = true;
    xm_strbuf_free(&name);
    return d;
}

static struct xm_dim
symbol(struct xm_graph *g, enum meaning meaning, const char *owner, uint32_t i)
{
    struct xm_dim_pool *p = &g->dims;
    switch (meaning) {
    case BATCH:
        return xm_dim_symbol(p, XM_SYMBOL_BATCH);
    case TOKENS:
        return xm_dim_symbol(p, XM_SYMBOL_TOKENS);
    case PAST:
        return xm_dim_symbol(p, XM_SYMBOL_PAST);
    case PAST_AND_TOKENS:
        return xm_dim_add(p, xm_dim_symbol(p, XM_SYMBOL_PAST),
                          xm_dim_symbol(p, XM_SYMBOL_TOKENS));
    default:
        return own_symbol(g, owner, i);
    }
}

static const struct convention *
find(const char *input, uint32_t rank)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(conventions); i++) {
        if (conventions[i].rank == rank && strcmp(conventions[i].input, input) == 0)
            return &conventions[i];
    }
    return NULL;
}

void
xm_ir_input_shape(struct xm_graph *g, const char *name, const int64_t *dim, uint32_t rank,
                  struct xm_shape *out)
{
    const struct convention *c = find(name, rank);
    out->rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        out->dim[i] =
            dim[i] >= 0 ? xm_dim_const(dim[i]) : symbol(g, c ? c->dim[i] : OWN, name, i);
}

/* A KV cache: rank 4, dimension 0 dynamic and exactly one more. */
static bool
is_kv_cache(const int64_t *dim, uint32_t rank)
{
    return rank == 4 && dim[0] < 0 && (dim[1] < 0) + (dim[2] < 0) + (dim[3] < 0) == 1;
}

void
xm_ir_state_shape(struct xm_graph *g, const char *variable, const int64_t *dim,
                  uint32_t rank, struct xm_shape *out)
{
    bool kv = is_kv_cache(dim, rank);
    out->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        enum meaning meaning = !kv ? OWN : i == 0 ? BATCH : PAST;
        out->dim[i] =
            dim[i] >= 0 ? xm_dim_const(dim[i]) : symbol(g, meaning, variable, i);
    }
}
