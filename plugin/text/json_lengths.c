/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies minLength and maxLength to a pattern: if only one part of the pattern has a variable
 * length, the repetition in it gets other bounds.
 *
 *     ^[a-z][a-z0-9-]*$ of 3 to 20 characters   ─►   ^[a-z][a-z0-9-]{2,19}$
 */
#include "plugin/text/grammar_parts.h"

/* The number of characters in the texts of a node. */
struct lengths {
    uint64_t least, most; /* `most` UINT64_MAX: no bound */
    bool is_known;
};

static uint64_t
add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t
multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return xm_mul_size(a, b, &product) ? product : UINT64_MAX;
}

static struct lengths
lengths_of(const struct xm_grammar_tree *t, uint32_t node)
{
    const struct xm_node_row *row = &t->nodes[node];
    struct lengths all = {.is_known = true};
    switch ((enum xm_node_kind)row->kind) {
    case XM_NODE_UNIT:
        return (struct lengths){1, 1, true};
    case XM_NODE_TEXT: /* its bytes may be JSON escapes, not characters */
        return (struct lengths){0, 0, row->b == 0};
    case XM_NODE_ALL:
    case XM_NODE_ANY:
    case XM_NODE_REPEAT:
        break;
    case XM_NODE_NEVER:
    case XM_NODE_TOKEN:
    case XM_NODE_RULE:
    case XM_NODE_LIST:
        return (struct lengths){0};
    }
    for (uint32_t i = 0; i < row->n && all.is_known; i++) {
        const struct lengths one = lengths_of(t, t->children[row->first + i]);
        const bool is_sum = row->kind == XM_NODE_ALL;
        all.is_known = one.is_known;
        if (i == 0)
            all = one;
        else if (is_sum)
            all = (struct lengths){add(all.least, one.least), add(all.most, one.most),
                                   one.is_known};
        else
            all =
                (struct lengths){one.least < all.least ? one.least : all.least,
                                 one.most > all.most ? one.most : all.most, one.is_known};
    }
    if (row->kind == XM_NODE_REPEAT) {
        all.least = multiply(all.least, row->a);
        all.most = all.most == 0            ? 0
                   : row->b == XM_UNBOUNDED ? UINT64_MAX
                                            : multiply(all.most, row->b);
    }
    return all;
}

static bool
is_fixed(struct lengths l)
{
    return l.is_known && l.least == l.most;
}

static uint32_t
bound_repeat(struct xm_grammar_tree *t, uint32_t node, uint64_t least, uint64_t most)
{
    const struct xm_node_row row = t->nodes[node];
    const uint32_t child = t->children[row.first];
    const struct lengths one = lengths_of(t, child);
    if (!is_fixed(one) || one.least == 0)
        return XM_NOWHERE;
    const uint64_t low = (least + one.least - 1) / one.least, high = most / one.least;
    return xm_tree_repeat(t, child, low > row.a ? (uint32_t)low : row.a,
                          high < row.b ? (uint32_t)high : row.b);
}

static uint32_t bound(struct xm_grammar_tree *t, uint32_t node, uint64_t least,
                      uint64_t most);

/* Bounds the one part of a concatenation whose length may vary by what the other parts leave.
 * XM_NOWHERE: not exactly one part varies, or the others are too long. */
static uint32_t
bound_all(struct xm_grammar_tree *t, uint32_t node, uint64_t least, uint64_t most)
{
    const struct xm_node_row row = t->nodes[node];
    struct xm_nodes parts = {0};
    uint64_t fixed = 0;
    uint32_t at = XM_NOWHERE, out = XM_NOWHERE;
    for (uint32_t i = 0; i < row.n; i++) {
        const struct lengths l = lengths_of(t, t->children[row.first + i]);
        if (!is_fixed(l) && at != XM_NOWHERE)
            return XM_NOWHERE;
        if (is_fixed(l))
            fixed = add(fixed, l.least);
        else
            at = i;
    }
    if (at == XM_NOWHERE || fixed > most)
        return XM_NOWHERE;
    const uint32_t part = bound(t, t->children[row.first + at],
                                least > fixed ? least - fixed : 0, most - fixed);
    for (uint32_t i = 0; i < row.n && part != XM_NOWHERE; i++)
        xm_nodes_add(t, &parts, i == at ? part : t->children[row.first + i]);
    if (part != XM_NOWHERE)
        out = xm_tree_all(t, parts.list, parts.n);
    xm_nodes_free(&parts);
    return out;
}

static uint32_t
bound_any(struct xm_grammar_tree *t, uint32_t node, uint64_t least, uint64_t most)
{
    const struct xm_node_row row = t->nodes[node];
    struct xm_nodes parts = {0};
    bool has_all = true;
    for (uint32_t i = 0; i < row.n && has_all; i++) {
        const uint32_t part = bound(t, t->children[row.first + i], least, most);
        has_all = part != XM_NOWHERE;
        xm_nodes_add(t, &parts, part);
    }
    const uint32_t out = has_all ? xm_tree_any(t, parts.list, parts.n) : XM_NOWHERE;
    xm_nodes_free(&parts);
    return out;
}

static uint32_t
bound(struct xm_grammar_tree *t, uint32_t node, uint64_t least, uint64_t most)
{
    if (xm_tree_is_never(t, node))
        return xm_tree_never(t);
    const struct lengths l = lengths_of(t, node);
    if (l.is_known && l.least >= least && l.most <= most)
        return node;
    if (l.is_known && (l.most < least || l.least > most))
        return xm_tree_never(t);
    switch ((enum xm_node_kind)t->nodes[node].kind) {
    case XM_NODE_REPEAT:
        return bound_repeat(t, node, least, most);
    case XM_NODE_ALL:
        return bound_all(t, node, least, most);
    case XM_NODE_ANY:
        return bound_any(t, node, least, most);
    default:
        return XM_NOWHERE;
    }
}

uint32_t
xm_tree_of_length(struct xm_grammar_tree *t, uint32_t node, uint32_t least, uint32_t most)
{
    return bound(t, node, least, most == XM_UNBOUNDED ? UINT64_MAX : most);
}
