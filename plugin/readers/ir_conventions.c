/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for the dynamic dimensions of a language model.
 *
 * IR files write '?' for every dynamic dimension, so that nothing could be proved equal.
 * What exporters of text generation agree on is in this table, and only here; a dimension
 * that no row speaks of gets a symbol of its own, "<input>.<i>", which is always safe. So does a
 * sum of which nothing else tells a part: a run's shapes could not be told from it.
 */
#include <string.h>

#include "plugin/readers/ir_records.h"
#include "runtime/util/compiler.h"
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
        return xm_dim_own(p, owner, i);
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

/* Whether a parameter has the new tokens as a dimension. */
static bool
has_tokens(const struct xm_ir_layer *l)
{
    int64_t dim[XM_MAX_RANK];
    uint32_t rank = 0;
    const char *shape = xm_ir_attr(l, "shape");
    if (strcmp(l->type, "Parameter") != 0 || !shape ||
        xm_ir_parse_shape(shape, dim, &rank) != NULL)
        return false;
    const struct convention *c = find(l->name, rank);
    for (uint32_t i = 0; c && i < rank; i++) {
        if (c->dim[i] == TOKENS && dim[i] < 0)
            return true;
    }
    return false;
}

bool
xm_ir_tells_lengths(const struct xm_ir_net *net)
{
    for (const struct xm_ir_layer *l = net->first_layer; l; l = l->next) {
        if (strcmp(l->type, "ReadValue") == 0 || has_tokens(l))
            return true;
    }
    return false;
}

void
xm_ir_input_shape(struct xm_graph *g, const char *name, const int64_t *dim, uint32_t rank,
                  bool knows_lengths, struct xm_shape *out)
{
    const struct convention *c = find(name, rank);
    out->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        enum meaning meaning = c ? c->dim[i] : OWN;
        if (meaning == PAST_AND_TOKENS && !knows_lengths)
            meaning = OWN;
        out->dim[i] = dim[i] >= 0 ? xm_dim_const(dim[i]) : symbol(g, meaning, name, i);
    }
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
