/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the exchanges of a split graph.
 */
#include "runtime/util/strbuf.h"
#include "transformations/split/split_plan.h"

static const char *
kind_text(const struct xm_exchange *e)
{
    static const char *const texts[] = {[XM_EXCHANGE_SUM] = "all_reduce",
                                        [XM_EXCHANGE_PARTS] = "all_gather",
                                        [XM_EXCHANGE_PASS] = "send"};
    return texts[e->kind];
}

static const char *
op_text(const struct xm_node *n)
{
    return xm_op_info(n->op)->text;
}

static double
kib(const struct xm_exchange *e)
{
    return (double)e->bytes / 1024.0;
}

void
xm_split_print(const struct xm_split *s, struct xm_strbuf *out)
{
    for (size_t i = 0; i < s->n_exchanges; i++) {
        const struct xm_exchange *e = &s->exchanges[i];
        xm_strbuf_printf(out, "%s  %8.1f KiB per token  after %s '%s', for %s '%s'\n",
                         kind_text(e), kib(e), op_text(e->value->node),
                         e->value->node->name, op_text(e->because), e->because->name);
    }
}

/* Whether two exchanges have the same kind and size and are between the same operations. */
static bool
are_alike(const struct xm_exchange *a, const struct xm_exchange *b)
{
    return a->kind == b->kind && a->bytes == b->bytes &&
           a->value->node->op == b->value->node->op && a->because->op == b->because->op;
}

void
xm_split_print_kinds(const struct xm_split *s, struct xm_strbuf *out)
{
    for (size_t i = 0; i < s->n_exchanges; i++) {
        const struct xm_exchange *e = &s->exchanges[i];
        size_t before = 0, all = 0;
        for (size_t k = 0; k < s->n_exchanges; k++) {
            const bool is_one = are_alike(e, &s->exchanges[k]);
            before += is_one && k < i;
            all += is_one;
        }
        if (before == 0)
            xm_strbuf_printf(out, "  %4zu x %s  %8.1f KiB  after %s, for %s\n", all,
                             kind_text(e), kib(e), op_text(e->value->node),
                             op_text(e->because));
    }
}
