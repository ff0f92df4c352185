/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives symbols to the dynamic dimensions of a language model.
 *
 * IR files write '?' for every dynamic dimension, so no two of them could be proved equal. The
 * conventions of exporters of text generation are in this table, and only here. A dimension that no
 * row describes gets its own symbol, "<input>.<i>", which is always safe. So does a sum of past and
 * new tokens if no other dimension gives one of the two: a run could not derive its shapes from the
 * sum.
 *
 * A cache of keys or values is a state or, in exports without states, an input past_*.
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
    /* dimension 0: axes of positions */
    { "position_ids",   3, { OWN,   BATCH,  TOKENS  } },
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

/* A name of a parameter: its layer's, or one of its tensor. */
struct name {
    const char *text;
    size_t n;
};

/* Iterates over the names; *at must be NULL at first. False: there are no more. */
static bool
next_name(const struct xm_ir_layer *l, const char **at, struct name *out)
{
    const char *tensors = l->out.first ? l->out.first->names : NULL;
    if (!*at) {
        *out = (struct name){l->name, strlen(l->name)};
        *at = tensors ? tensors : "";
        return true;
    }
    if (!**at)
        return false;
    *out = (struct name){*at, strcspn(*at, ",")};
    *at += out->n + ((*at)[out->n] == ',');
    return true;
}

static const struct convention *
find_convention(const struct xm_ir_layer *l, uint32_t rank)
{
    struct name name;
    for (const char *at = NULL; next_name(l, &at, &name);)
        for (size_t i = 0; i < XM_ARRAY_LEN(conventions); i++) {
            const struct convention *c = &conventions[i];
            if (c->rank == rank && strlen(c->input) == name.n &&
                strncmp(c->input, name.text, name.n) == 0)
                return c;
        }
    return NULL;
}

/* Returns whether a parameter is a cache of the model's own tokens, such as past_key_values.0.key,
 * but not one of an encoder. */
static bool
is_called_past(const struct xm_ir_layer *l)
{
    static const char past[] = "past", encoder[] = "encoder.";
    struct name name;
    for (const char *at = NULL; next_name(l, &at, &name);) {
        bool is_past = strncmp(name.text, past, sizeof(past) - 1) == 0;
        for (size_t i = 0; i < name.n && is_past; i++)
            is_past = strncmp(name.text + i, encoder, sizeof(encoder) - 1) != 0;
        if (is_past)
            return true;
    }
    return false;
}

/* Returns whether a shape is that of a cache of keys or values: rank 4, dimension 0 dynamic, and
 * exactly one more dynamic dimension. */
static bool
is_kv_cache(const int64_t *dim, uint32_t rank)
{
    return rank == 4 && dim[0] < 0 && (dim[1] < 0) + (dim[2] < 0) + (dim[3] < 0) == 1;
}

/* Returns the meaning of dimension i, a dynamic dimension of a cache. */
static enum meaning
meaning_of_cache(uint32_t i)
{
    return i == 0 ? BATCH : PAST;
}

/* Returns whether the number of new tokens is a dimension of a parameter. */
static bool
has_tokens(const struct xm_ir_layer *l)
{
    int64_t dim[XM_MAX_RANK];
    uint32_t rank = 0;
    const char *shape = xm_ir_attr(l, "shape");
    if (strcmp(l->type, "Parameter") != 0 || !shape ||
        xm_ir_parse_shape(shape, dim, &rank) != NULL)
        return false;
    const struct convention *c = find_convention(l, rank);
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
xm_ir_input_shape(struct xm_graph *g, const struct xm_ir_layer *l, const int64_t *dim,
                  uint32_t rank, bool knows_lengths, struct xm_shape *out)
{
    const struct convention *c = find_convention(l, rank);
    const bool is_cache = knows_lengths && is_kv_cache(dim, rank) && is_called_past(l);
    out->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        enum meaning meaning = c ? c->dim[i] : is_cache ? meaning_of_cache(i) : OWN;
        if (meaning == PAST_AND_TOKENS && !knows_lengths)
            meaning = OWN;
        out->dim[i] = dim[i] >= 0 ? xm_dim_const(dim[i]) : symbol(g, meaning, l->name, i);
    }
}

void
xm_ir_state_shape(struct xm_graph *g, const char *variable, const int64_t *dim,
                  uint32_t rank, struct xm_shape *out)
{
    bool kv = is_kv_cache(dim, rank);
    out->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        enum meaning meaning = kv ? meaning_of_cache(i) : OWN;
        out->dim[i] =
            dim[i] >= 0 ? xm_dim_const(dim[i]) : symbol(g, meaning, variable, i);
    }
}
