/* SPDX-License-Identifier: Apache-2.0
 *
 * Applying rules: at every node, in rule order, until nothing changes.
 */
#include "transformations/rewrite/rewrite.h"

#include "transformations/rewrite/match.h"

/* Most rounds: rules that still change the graph then undo each other, which is a bug. */
enum { MAX_ROUNDS = 64 };

/* The new node that does the work of the replaced ones: nodes after it only convert to the old
 * shape and type. */
static struct xm_node *
worker(const struct xm_value *v, uint32_t next_id)
{
    struct xm_node *n = v->node;
    while ((n->op == XM_OP_RESHAPE || n->op == XM_OP_CONVERT) &&
           xm_in(n, 0)->node->id >= next_id && !xm_is_none(xm_in(n, 0)))
        n = xm_in(n, 0)->node;
    return n;
}

static bool
apply_rule(struct xm_match *m, const struct xm_rule *rule)
{
    const char *why;
    const uint32_t next_id = m->graph->next_id;
    struct xm_value *old = &m->root->out[rule->find->out];
    struct xm_value *new = xm_replacement_build(m, rule, &why);
    struct xm_builder b = xm_builder_before(m->graph, m->root);
    if (!new)
        return false;
    if (rule->then)
        rule->then(&b, m, new);
    xm_value_replace(m->graph, old, new);
    m->root->heir = worker(new, next_id);
    xm_node_remove_dead(m->graph, m->root);
    return true;
}

static bool
rewrite_node(struct xm_graph *g, const struct xm_caps *caps, const struct xm_rule *rules,
             struct xm_node *n)
{
    for (const struct xm_rule *rule = rules; rule->name; rule++) {
        if (rule->find->op != n->op || n->out[rule->find->out].n_uses == 0)
            continue;
        struct xm_match m = {.graph = g, .caps = caps, .root = n};
        struct xm_matcher s = {.m = &m};
        if (xm_matcher_run(&s, rule->find, &n->out[rule->find->out], rule->condition) &&
            apply_rule(&m, rule))
            return true;
        if (g->err.status != XM_OK)
            return false;
    }
    return false;
}

bool
xm_rewrite(struct xm_graph *g, const struct xm_caps *caps, const struct xm_rule *rules)
{
    bool any = false, again = true;
    for (int round = 0; again && round < MAX_ROUNDS; round++) {
        again = false;
        xm_for_each_node_safe(n, g)
        {
            again |= rewrite_node(g, caps, rules, n);
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

/* Returns why the rule does not replace the root; NULL: it would. */
static const char *
refusal(struct xm_matcher *s, const struct xm_rule *rule)
{
    const char *why;
    struct xm_match *m = s->m;
    const uint32_t next_id = m->graph->next_id;
    const struct xm_error err = m->graph->err;
    if (!xm_matcher_run(s, rule->find, &m->root->out[rule->find->out], rule->condition))
        return s->best < UINT32_MAX ? s->reason
               : m->why             ? m->why
                                    : "the condition of the rule does not hold";
    s->best = UINT32_MAX;
    if (xm_replacement_build(m, rule, &why)) {
        xm_replacement_undo(m, next_id);
        return NULL;
    }
    m->graph->err = err; /* this was only a trial */
    return why ? why : m->why ? m->why : "the replacement cannot be built";
}

const char *
xm_rewrite_near_miss(const struct xm_rule *rules, struct xm_graph *g,
                     const struct xm_caps *caps, struct xm_node *root)
{
    uint32_t best = 0;
    const char *text = "";
    for (const struct xm_rule *rule = rules; rule->name; rule++) {
        if (rule->find->op != root->op)
            continue;
        struct xm_match m = {.graph = g, .caps = caps, .root = root};
        struct xm_matcher s = {.m = &m, .want_reason = true};
        const char *reason = refusal(&s, rule);
        if (!reason)
            return ""; /* the rule applies */
        if (!*text || s.best > best) {
            const char *t =
                xm_arena_printf(&g->arena, "rule '%s': %s", rule->name, reason);
            text = t ? t : "";
            best = s.best;
        }
    }
    return text;
}
