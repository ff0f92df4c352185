/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "plugin/text/grammar_parts.h"

void
xm_tree_free(struct xm_grammar_tree *t)
{
    xm_free(t->nodes);
    xm_free(t->children);
    xm_free(t->flags);
    xm_free(t->rules);
    xm_free(t->units);
    xm_hash_free(&t->unit_index);
    xm_free(t->unit_nodes);
    xm_free(t->unit_edges);
    xm_free(t->tokens);
    xm_strbuf_free(&t->bytes);
    *t = (struct xm_grammar_tree){0};
}

enum xm_status
xm_tree_check(const struct xm_grammar_tree *t, struct xm_error *err)
{
    if (t->failed == XM_NO_MEMORY || !xm_strbuf_ok(&t->bytes))
        return xm_no_memory(err, "a grammar");
    return t->failed == XM_OK
               ? XM_OK
               : xm_fail(err, XM_UNSUPPORTED,
                         "the grammar is too large: at most %d nodes, %d rules, and %d "
                         "ranges in a character class are supported",
                         XM_GRAMMAR_MOST_NODES, XM_GRAMMAR_MOST_RULES,
                         XM_GRAMMAR_MOST_RANGES);
}

/* The first node of every tree. Functions that fail return it. */
enum { NEVER = 0 };

static uint32_t
fail(struct xm_grammar_tree *t, enum xm_status status)
{
    if (t->failed == XM_OK)
        t->failed = status;
    return NEVER;
}

static uint32_t
add(struct xm_grammar_tree *t, struct xm_node_row row)
{
    if (t->n_nodes == 0 && row.kind != XM_NODE_NEVER)
        xm_tree_never(t);
    if (t->failed != XM_OK)
        return NEVER;
    if (t->n_nodes >= XM_GRAMMAR_MOST_NODES)
        return fail(t, XM_UNSUPPORTED);
    struct xm_node_row *grown =
        xm_grow(t->nodes, &t->nodes_capacity, t->n_nodes + 1, sizeof(*grown));
    if (!grown)
        return fail(t, XM_NO_MEMORY);
    t->nodes = grown;
    t->nodes[t->n_nodes] = row;
    return (uint32_t)t->n_nodes++;
}

uint32_t
xm_tree_never(struct xm_grammar_tree *t)
{
    return t->n_nodes == 0 ? add(t, (struct xm_node_row){.kind = XM_NODE_NEVER}) : NEVER;
}

bool
xm_tree_is_never(const struct xm_grammar_tree *t, uint32_t node)
{
    return t->failed != XM_OK || t->nodes[node].kind == XM_NODE_NEVER;
}

void
xm_tree_mark(struct xm_grammar_tree *t, uint32_t node)
{
    if (node != NEVER && t->failed == XM_OK)
        t->nodes[node].is_place = true;
}

/* Copies n bytes into t->bytes and returns their offset. */
static uint32_t
add_bytes(struct xm_grammar_tree *t, const char *text, size_t n)
{
    const size_t offset = t->bytes.n;
    if (n > XM_GRAMMAR_MOST_BYTES || offset > 8 * (size_t)XM_GRAMMAR_MOST_BYTES) {
        fail(t, XM_UNSUPPORTED);
        return 0;
    }
    xm_strbuf_add_n(&t->bytes, text, n);
    if (!xm_strbuf_ok(&t->bytes))
        fail(t, XM_NO_MEMORY);
    return (uint32_t)offset;
}

uint32_t
xm_tree_text(struct xm_grammar_tree *t, const char *text, size_t n)
{
    return add(t, (struct xm_node_row){.kind = XM_NODE_TEXT,
                                       .a = add_bytes(t, text, n),
                                       .b = (uint32_t)n});
}

uint32_t
xm_tree_empty(struct xm_grammar_tree *t)
{
    return xm_tree_text(t, "", 0);
}

uint32_t
xm_tree_class(struct xm_grammar_tree *t, const struct xm_class *c,
              enum xm_spelling spelling)
{
    if (c->failed)
        return fail(t, XM_NO_MEMORY);
    if (c->n == 0 && spelling != XM_SPELL_JSON_ANY)
        return xm_tree_never(t);
    const uint32_t unit = xm_tree_add_unit(t, c, spelling);
    return add(t, (struct xm_node_row){.kind = XM_NODE_UNIT, .a = unit});
}

uint32_t
xm_tree_token(struct xm_grammar_tree *t, const char *text, size_t n, uint32_t id)
{
    struct xm_grammar_token *grown =
        xm_grow(t->tokens, &t->tokens_capacity, t->n_tokens + 1, sizeof(*grown));
    if (!grown)
        return fail(t, XM_NO_MEMORY);
    t->tokens = grown;
    t->tokens[t->n_tokens++] =
        (struct xm_grammar_token){add_bytes(t, text, n), (uint32_t)n, id};
    return add(
        t, (struct xm_node_row){.kind = XM_NODE_TOKEN, .a = (uint32_t)t->n_tokens - 1});
}

uint32_t
xm_tree_rule_ref(struct xm_grammar_tree *t, uint32_t rule)
{
    return add(t, (struct xm_node_row){.kind = XM_NODE_RULE, .a = rule});
}

/* Adds a node with copies of these children. `flags` (may be NULL) has a byte for each child. */
static uint32_t
add_parent(struct xm_grammar_tree *t, struct xm_node_row row, const uint32_t *children,
           const uint8_t *flags, size_t n)
{
    if (t->failed != XM_OK)
        return NEVER;
    if (t->n_children + n > XM_GRAMMAR_MOST_NODES)
        return fail(t, XM_UNSUPPORTED);
    uint32_t *grown =
        xm_grow(t->children, &t->children_capacity, t->n_children + n, sizeof(*grown));
    t->children = grown ? grown : t->children;
    uint8_t *grown_flags =
        xm_grow(t->flags, &t->flags_capacity, t->n_children + n, sizeof(*grown_flags));
    t->flags = grown_flags ? grown_flags : t->flags;
    if (!grown || !grown_flags)
        return fail(t, XM_NO_MEMORY);
    row.first = (uint32_t)t->n_children;
    row.n = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        t->children[row.first + i] = children[i];
        t->flags[row.first + i] = flags ? flags[i] : 0;
    }
    t->n_children += n;
    return add(t, row);
}

uint32_t
xm_tree_all(struct xm_grammar_tree *t, const uint32_t *children, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (xm_tree_is_never(t, children[i]))
            return xm_tree_never(t);
    if (n == 1)
        return children[0];
    return n == 0 ? xm_tree_empty(t)
                  : add_parent(t, (struct xm_node_row){.kind = XM_NODE_ALL}, children,
                               NULL, n);
}

uint32_t
xm_tree_any(struct xm_grammar_tree *t, const uint32_t *children, size_t n)
{
    struct xm_nodes kept = {0};
    uint32_t node = NEVER;
    for (size_t i = 0; i < n; i++)
        if (!xm_tree_is_never(t, children[i]))
            xm_nodes_add(t, &kept, children[i]);
    if (kept.n == 1)
        node = kept.list[0];
    else if (kept.n == 0)
        node = xm_tree_never(t);
    else
        node = add_parent(t, (struct xm_node_row){.kind = XM_NODE_ANY}, kept.list, NULL,
                          kept.n);
    xm_nodes_free(&kept);
    return node;
}

uint32_t
xm_tree_repeat(struct xm_grammar_tree *t, uint32_t child, uint32_t least, uint32_t most)
{
    if (least > most)
        return xm_tree_never(t);
    if (most == 0 || (least == 0 && xm_tree_is_never(t, child)))
        return xm_tree_empty(t);
    if ((least == 1 && most == 1) || xm_tree_is_never(t, child))
        return child;
    return add_parent(t,
                      (struct xm_node_row){.kind = XM_NODE_REPEAT, .a = least, .b = most},
                      &child, NULL, 1);
}

uint32_t
xm_tree_list(struct xm_grammar_tree *t, uint32_t separator, const uint32_t *children,
             const uint8_t *flags, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(flags[i] & XM_LIST_OPTIONAL) && xm_tree_is_never(t, children[i]))
            return xm_tree_never(t);
    return add_parent(t, (struct xm_node_row){.kind = XM_NODE_LIST, .a = separator},
                      children, flags, n);
}

uint32_t
xm_tree_add_rule(struct xm_grammar_tree *t, const char *name, size_t n)
{
    if (t->n_rules >= XM_GRAMMAR_MOST_RULES) {
        fail(t, XM_UNSUPPORTED);
        return 0;
    }
    struct xm_tree_rule *grown =
        xm_grow(t->rules, &t->rules_capacity, t->n_rules + 1, sizeof(*grown));
    if (!grown) {
        fail(t, XM_NO_MEMORY);
        return 0;
    }
    t->rules = grown;
    t->rules[t->n_rules] = (struct xm_tree_rule){
        .node = XM_NOWHERE, .name = add_bytes(t, name, n), .n = (uint32_t)n};
    return (uint32_t)t->n_rules++;
}

void
xm_nodes_add(struct xm_grammar_tree *t, struct xm_nodes *nodes, uint32_t node)
{
    uint32_t *grown =
        xm_grow(nodes->list, &nodes->capacity, nodes->n + 1, sizeof(*grown));
    if (!grown) {
        fail(t, XM_NO_MEMORY);
        return;
    }
    nodes->list = grown;
    nodes->list[nodes->n++] = node;
}

void
xm_nodes_free(struct xm_nodes *nodes)
{
    xm_free(nodes->list);
    *nodes = (struct xm_nodes){0};
}
