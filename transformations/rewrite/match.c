/* SPDX-License-Identifier: Apache-2.0
 *
 * Matching a pattern against the nodes above a value.
 *
 * Commuting nodes of a pattern are numbered as they are met; an attempt fixes the order
 * of each by a bit, and all orders are tried. That is complete (a choice made early can
 * be revised because of something found late), and patterns have few such nodes.
 */
#include "transformations/rewrite/match.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool
miss(struct xm_matcher *s, const struct xm_value *v, const char *what)
{
    if (s->want_reason && (!*s->reason || s->matched > s->best)) {
        s->best = s->matched;
        snprintf(s->reason, sizeof(s->reason), "%%%u %s '%.100s': %s", v->node->id,
                 xm_op_info(v->node->op)->text, v->node->name, what);
    }
    return false;
}

static bool
bind(struct xm_matcher *s, int slot, struct xm_value *v)
{
    if (slot < 0)
        return true;
    if (s->m->slot[slot] && s->m->slot[slot] != v)
        return miss(s, v, "is not the value that the pattern met before");
    s->m->slot[slot] = v;
    return true;
}

static bool match(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v,
                  bool is_root);

static uint32_t
n_operands(const struct xm_pat *pat)
{
    uint32_t n = 0;
    while (n < XM_PAT_IN && pat->in[n])
        n++;
    return n;
}

static bool
match_op(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v, bool is_root)
{
    struct xm_node *n = v->node;
    if (n->op != pat->op) {
        char what[64] = "";
        if (!s->want_reason)
            return false;
        snprintf(what, sizeof(what), "the pattern wants %s here",
                 xm_op_info(pat->op)->text);
        return miss(s, v, what);
    }
    uint32_t n_in = n_operands(pat);
    if ((n->n_in != n_in && !pat->opaque) || v->index != pat->out)
        return miss(s, v, "has another number of operands, or is another result");
    if (!is_root && !pat->shared && v->n_uses != 1)
        return miss(s, v, "has other users, the pattern allows one");
    if (!bind(s, pat->slot, v))
        return false;
    s->matched++;
    bool swap = false;
    if (n_in == 2 && (xm_op_info(n->op)->flags & XM_OPF_COMMUTES) &&
        s->commuting < XM_PAT_COMMUTING)
        swap = (s->orders >> s->commuting++) & 1;
    for (uint32_t i = 0; i < n_in; i++) {
        if (!match(s, pat->in[i], xm_in(n, swap ? 1 - i : i), false))
            return false;
    }
    return true;
}

static bool
match(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v, bool is_root)
{
    float number;
    switch (pat->kind) {
    case XM_PAT_OP:
        return match_op(s, pat, v, is_root);
    case XM_PAT_VAR:
        break;
    case XM_PAT_CONST:
        if (!xm_value_is_const(v))
            return miss(s, v, "is not a constant");
        break;
    case XM_PAT_SCALAR:
        if (!xm_value_is_scalar_const(v, &number) ||
            fabs(number - pat->number) > 1e-6 * fmax(1.0, fabs(pat->number)))
            return miss(s, v, "is not the constant that the pattern wants");
        break;
    case XM_PAT_NUMBER:
        if (!xm_value_is_scalar_const(v, &number))
            return miss(s, v, "is not a constant of one element");
        break;
    case XM_PAT_INTS:
        if (!xm_content_known(&v->content))
            return miss(s, v, "is not a known integer value");
        break;
    }
    return bind(s, pat->slot, v);
}

bool
xm_matcher_run(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v)
{
    struct xm_value *before[XM_MAX_SLOTS];
    memcpy(before, s->m->slot, sizeof(before));
    uint32_t most = 0; /* commuting nodes that any attempt has reached */
    for (s->orders = 0; s->orders < (1u << XM_PAT_COMMUTING); s->orders++) {
        s->commuting = s->matched = 0;
        if (match(s, pat, v, true))
            return true;
        memcpy(s->m->slot, before, sizeof(before));
        most = s->commuting > most ? s->commuting : most;
        if (s->orders + 1 >= (1u << most))
            break; /* every order of what this pattern reaches has been tried */
    }
    return false;
}

bool
xm_match_value(struct xm_match *m, const struct xm_pat *find, struct xm_value *v)
{
    struct xm_matcher s = {.m = m};
    return xm_matcher_run(&s, find, v);
}
