/* SPDX-License-Identifier: Apache-2.0
 *
 * Applying rules: at every node, in rule order, until nothing changes.
 */
#include "transformations/rewrite/rewrite.h"

#include <string.h>

#include "transformations/rewrite/match.h"

/* A rule set that still changes things then undoes itself: our mistake. */
enum { MAX_ROUNDS = 64 };

bool
xm_can_run(const struct xm_caps *caps, enum xm_op op, const union xm_attr *attr,
           struct xm_value *const *in, uint32_t n_in, const char **why_not)
{
    *why_not = NULL;
    return !caps || !caps->can_run ||
           caps->can_run(caps->ctx, op, attr, in, n_in, why_not);
}

/* Builds a replacement pattern: VAR and WEIGHT are slots, SCALAR an f32 constant. */
static struct xm_value *
emit(struct xm_builder *b, const struct xm_match *m, const struct xm_pat *pat)
{
    struct xm_value *in[XM_PAT_IN];
    uint32_t n = 0;
    switch (pat->kind) {
    case XM_PAT_SCALAR:
        return xm_const_float(b, XM_F32, (float)pat->number);
    case XM_PAT_OP:
        for (; n < XM_PAT_IN && pat->in[n]; n++)
            in[n] = emit(b, m, pat->in[n]);
        return xm_op_build(b, pat->op, NULL, in, n);
    default:
        return m->slot[pat->slot];
    }
}

static bool
apply_rule(struct xm_graph *g, const struct xm_rule *rule, struct xm_match *m)
{
    struct xm_builder b = xm_builder_before(g, m->root);
    struct xm_value *old = &m->root->out[rule->find->out];
    struct xm_value *new = rule->apply ? rule->apply(&b, m) : emit(&b, m, rule->replace);
    if (!new)
        return false;
    xm_value_replace(g, old, new);
    xm_node_remove_dead(g, m->root);
    return true;
}

static bool
rewrite_node(struct xm_graph *g, const struct xm_caps *caps, const struct xm_rule *rules,
             size_t n_rules, struct xm_node *n)
{
    for (size_t r = 0; r < n_rules; r++) {
        const struct xm_rule *rule = &rules[r];
        if (rule->find->op != n->op || n->out[rule->find->out].n_uses == 0)
            continue;
        struct xm_match m = {.graph = g, .caps = caps, .root = n};
        if (!xm_match_value(&m, rule->find, &n->out[rule->find->out]))
            continue;
        if (rule->condition && !rule->condition(&m))
            continue;
        if (apply_rule(g, rule, &m))
            return true;
        if (g->err.status != XM_OK)
            return false;
    }
    return false;
}

bool
xm_rewrite(struct xm_graph *g, const struct xm_caps *caps, const struct xm_rule *rules,
           size_t n_rules)
{
    bool any = false, again = true;
    for (int round = 0; again && round < MAX_ROUNDS; round++) {
        again = false;
        xm_for_each_node_safe(n, g)
        {
            again |= rewrite_node(g, caps, rules, n_rules, n);
            if (g->err.status != XM_OK)
                return any;
        }
        any |= again;
        /* A rule may have made a value that nodes before its root read. */
        if (again && xm_graph_sort(g, &g->err) != XM_OK)
            return any;
    }
    return any;
}

const char *
xm_rewrite_near_miss(const struct xm_rule *rules, size_t n_rules, struct xm_graph *g,
                     const struct xm_caps *caps, struct xm_node *root)
{
    uint32_t best = 0;
    const char *text = "";
    for (size_t r = 0; r < n_rules; r++) {
        const struct xm_rule *rule = &rules[r];
        if (rule->find->op != root->op)
            continue;
        struct xm_match m = {.graph = g, .caps = caps, .root = root};
        struct xm_matcher s = {.m = &m, .want_reason = true};
        const char *reason = s.reason;
        if (xm_matcher_run(&s, rule->find, &root->out[rule->find->out])) {
            if (!rule->condition || rule->condition(&m))
                return ""; /* it applies */
            reason = m.why ? m.why : "its condition does not hold";
            s.best = UINT32_MAX;
        }
        if (!*text || s.best > best) {
            const char *t =
                xm_arena_printf(&g->arena, "rule '%s': %s", rule->name, reason);
            text = t ? t : "";
            best = s.best;
        }
    }
    return text;
}
