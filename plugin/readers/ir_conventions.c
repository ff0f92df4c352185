/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for the dynamic dimensions of a language model.
 *
 * IR files write '?' for every dynamic dimension, so that nothing could be proved equal.
 * What exporters of text generation agree on is in this table, and only here; a dimension
 * that no row speaks of gets a symbol of its own, "<input>.<i>", which is always safe. So does a
 * sum of which nothing else tells a part: a run's shapes could not be told from it.
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

/* A name of a parameter: that of its layer, or of its tensor. */
struct name {
    const char *text;
    size_t n;
};

/* The next one; false: there is none. *at begins as NULL. */
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

/* past_key_values.0.key and the like: of tokens that the model made or was fed, not of what an
 * encoder has read. */
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

/* A cache of keys or values: rank 4, dimension 0 dynamic and exactly one more. */
static bool
is_kv_cache(const int64_t *dim, uint32_t rank)
{
    return rank == 4 && dim[0] < 0 && (dim[1] < 0) + (dim[2] < 0) + (dim[3] < 0) == 1;
}

/* Of dimension i, which is dynamic. */
static enum meaning
meaning_of_cache(uint32_t i)
{
    return i == 0 ? BATCH : PAST;
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
