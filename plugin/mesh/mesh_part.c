/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/mesh/mesh_part.h"

#include <string.h>

#include "plugin/by_shape.h"
#include "transformations/graph/symbols.h"

bool
xm_mesh_halves_sums(const char *precision)
{
    return precision && (strcmp(precision, "f16") == 0 || strcmp(precision, "FP16") == 0);
}

enum xm_status
xm_mesh_wish(const struct xm_mesh_devices *d, const char *policy,
             struct xm_split_wish *out, struct xm_error *err)
{
    static const struct {
        const char *policy;
        bool splits_all, by_expert, by_layer;
    } rows[] = {{"", .splits_all = false},
                {"TENSOR_PARALLEL", .splits_all = true},
                {"EXPERT_PARALLEL", .splits_all = true, .by_expert = true},
                {"PIPELINE_PARALLEL", .by_layer = true}};
    const char *p = policy ? policy : "";
    size_t i = 0;
    while (i < XM_ARRAY_LEN(rows) && strcmp(p, rows[i].policy) != 0)
        i++;
    if (i == XM_ARRAY_LEN(rows))
        return xm_fail(err, XM_INVALID,
                       "MODEL_DISTRIBUTION_POLICY is TENSOR_PARALLEL, EXPERT_PARALLEL or "
                       "PIPELINE_PARALLEL, not '%.60s'",
                       p);
    *out = (struct xm_split_wish){.ranks = d->n,
                                  .shares = d->share,
                                  .read_rate = 5e10,
                                  .link_rate = 5e9,
                                  .link_latency_s = 15e-6,
                                  .splits_all = rows[i].splits_all,
                                  .by_expert = rows[i].by_expert,
                                  .by_layer = rows[i].by_layer};
    return XM_OK;
}

/* Returns the text that `print` appends, which the caller frees with xm_free; NULL: no memory. */
static char *
text_of(const struct xm_split *split,
        void (*print)(const struct xm_split *s, struct xm_strbuf *out))
{
    struct xm_strbuf text = {0};
    print(split, &text);
    char *copy = xm_strbuf_ok(&text) ? xm_strdup(xm_strbuf_text(&text)) : NULL;
    xm_strbuf_free(&text);
    return copy;
}

/* Returns whether the value has rows only of tokens whose logits are wanted. */
static bool
is_of_chosen(const struct xm_value *v)
{
    for (uint32_t i = 0; i < v->type.shape.rank; i++) {
        const struct xm_dim d = v->type.shape.dim[i];
        for (uint32_t k = 0; k < xm_dim_symbols(d); k++)
            if (strcmp(xm_dim_symbol_name(d, k), XM_SYMBOL_SAMPLES) == 0)
                return true;
    }
    return false;
}

static enum xm_status
take_exchanges(struct xm_mesh_parts *p, const struct xm_split *split,
               struct xm_error *err)
{
    const struct xm_exchange *list = xm_split_exchanges(split, &p->n_exchanges);
    for (uint32_t i = 0; i < p->n_exchanges; i++) {
        struct xm_exchange_work *w =
            is_of_chosen(list[i].value) ? &p->exchanged_chosen : &p->exchanged;
        p->exchanged_bytes += list[i].bytes;
        if (list[i].kind == XM_EXCHANGE_PASS) {
            w->passes++;
            w->passed_bytes += (double)list[i].bytes;
            continue;
        }
        w->messages++;
        *(list[i].kind == XM_EXCHANGE_SUM ? &w->sum_bytes : &w->part_bytes) +=
            (double)list[i].bytes;
    }
    p->exchanges = text_of(split, xm_split_print);
    p->exchange_kinds = text_of(split, xm_split_print_kinds);
    return p->exchanges && p->exchange_kinds ? XM_OK : xm_no_memory(err, "a mesh");
}

/* Refuses a split whose exchanges differ from those of rank 0: passes may have rewritten the graph
 * differently for another kind of device. */
static enum xm_status
check_alike(const struct xm_mesh_parts *p, const struct xm_split *split,
            struct xm_error *err)
{
    char *text = text_of(split, xm_split_print);
    if (!text)
        return xm_no_memory(err, "a mesh");
    const bool is_alike = strcmp(p->exchanges, text) == 0;
    xm_free(text);
    return is_alike ? XM_OK
                    : xm_fail(err, XM_UNSUPPORTED,
                              "devices %s and %s run this model in operations that "
                              "exchange different values",
                              p->devices->name[0], p->devices->name[p->end->rank]);
}

/* Adds n bytes to a hash (FNV-1a). */
static uint64_t
mix(uint64_t hash, const void *bytes, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t
fingerprint(const struct xm_graph *g)
{
    enum { FIRST = 64 };
    uint64_t hash = 0xcbf29ce484222325u;
    xm_for_each_node(n, g)
    {
        if (n->op != XM_OP_WEIGHT)
            continue;
        const struct xm_bytes data = n->attr.weight.data;
        hash = mix(hash, &data.n, sizeof(data.n));
        hash = mix(hash, data.p, data.n < FIRST ? data.n : FIRST);
    }
    return hash;
}

static const char *
find_weight_format(const struct xm_graph *g)
{
    struct xm_weight_tally tally = {0};
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_WEIGHT)
            xm_weight_tally_add(&tally, &n->attr.weight);
    }
    return xm_weight_tally_most(&tally);
}

/* Makes the graph of the rank that compiles now, which may have no part of the model. */
static enum xm_status
make_part(const struct xm_mesh_parts *p, const struct xm_split *split,
          struct xm_kept_graph *kept, struct xm_graph **out, struct xm_error *err)
{
    if (!p->end)
        return xm_split_take_results(kept->graph, p->job, p->first, &kept->base, out,
                                     err);
    XM_TRY(xm_split_part(split, p->end, &kept->base, out, err));
    return p->job && p->end->rank == 0
               ? xm_split_give_results(kept->graph, *out, p->job, p->is_idle, err)
               : XM_OK;
}

enum xm_status
xm_mesh_take_part(void *parts, struct xm_graph **g, struct xm_error *err)
{
    struct xm_mesh_parts *p = parts;
    struct xm_kept_graph *kept = NULL;
    struct xm_split *split = NULL;
    struct xm_graph *part = NULL;
    XM_TRY(xm_graph_keep(g, &kept, err)); /* the part uses the whole graph's constants */
    p->fingerprint = fingerprint(kept->graph);
    p->weight_format = find_weight_format(kept->graph);
    enum xm_status s = xm_split_plan(kept->graph, &p->wish, &split, err);
    if (s == XM_OK)
        s = p->exchanges ? check_alike(p, split, err) : take_exchanges(p, split, err);
    for (uint32_t i = 0; i < p->wish.ranks && s == XM_OK; i++)
        s = xm_split_weight_bytes(split, i, &p->weight_bytes[i], err);
    if (s == XM_OK)
        s = make_part(p, split, kept, &part, err);
    if (s == XM_OK) {
        xm_graph_destroy(*g);
        *g = part;
    } else if (part) {
        xm_graph_destroy(part);
    }
    xm_split_free(split);
    xm_mapping_unref(&kept->base);
    return s;
}

enum xm_status
xm_mesh_take_whole(void *parts, struct xm_graph **g, struct xm_error *err)
{
    struct xm_mesh_parts *p = parts;
    struct xm_kept_graph *kept = NULL;
    struct xm_split *split = NULL;
    struct xm_graph *whole = NULL;
    XM_TRY(xm_graph_keep(g, &kept, err));
    enum xm_status s = xm_split_plan(kept->graph, &p->wish, &split, err);
    if (s == XM_OK)
        s = xm_split_whole(split, &kept->base, &whole, err);
    if (s == XM_OK) {
        xm_graph_destroy(*g);
        *g = whole;
    }
    xm_split_free(split);
    xm_mapping_unref(&kept->base);
    return s;
}
