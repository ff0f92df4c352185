/* SPDX-License-Identifier: Apache-2.0
 *
 * Matches a pattern with the nodes that compute a value.
 *
 * Commuting nodes of a pattern are numbered in the order in which they are visited. An attempt
 * fixes the order of operands of each by a bit, and all combinations are tried. So an early choice
 * can be revised because of a later failure; patterns have few such nodes.
 */
#include "transformations/rewrite/match.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "transformations/rewrite/linear_node.h"
#include "transformations/rewrite/patterns.h"

static bool
miss(struct xm_matcher *s, const struct xm_value *v, const char *what)
{
    if (s->want_reason && s->best < UINT32_MAX && (!*s->reason || s->matched > s->best)) {
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
        return miss(s, v, "is not the value that the pattern requires to be the same");
    s->m->slot[slot] = v;
    return true;
}

static bool match(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v,
                  bool is_root);

const struct xm_pat *
xm_pat_operand(const struct xm_pat *pat, uint32_t i, uint32_t *at)
{
    const struct xm_pat *one = pat->in[i];
    bool is_named = one->kind == XM_PAT_AT;
    *at = is_named ? one->at : i;
    return is_named ? one->in[0] : one;
}

/* Operand i of a node; NULL: absent. */
static struct xm_value *
operand(const struct xm_node *n, uint32_t i)
{
    return i < n->n_in && !xm_is_none(xm_in(n, i)) ? xm_in(n, i) : NULL;
}

/* Matches operand i of v's node. */
static bool
match_operand(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v,
              uint32_t i)
{
    struct xm_value *in = operand(v->node, i);
    char what[64] = "";
    if (in && pat->kind != XM_PAT_ABSENT)
        return match(s, pat, in, false);
    if (!in && (pat->kind == XM_PAT_ABSENT ||
                (pat->kind == XM_PAT_MAYBE && !s->m->slot[pat->slot])))
        return true;
    if (s->want_reason)
        snprintf(what, sizeof(what), "operand %u is %s", i,
                 in ? "present, but the pattern requires it to be absent" : "absent");
    return miss(s, v, what);
}

/* Whether v has no other users, unless the pattern allows them, and agrees with the slot; then
 * stores v in the slot. */
static bool
enter(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v, bool is_root)
{
    if (!is_root && !pat->shared && v->n_uses != 1)
        return miss(s, v, "has several readers, but the pattern allows one");
    if (!bind(s, pat->slot, v))
        return false;
    s->matched++;
    return true;
}

/* Matches the operands that the pattern lists, in order or with 0 and 1 exchanged. */
static bool
match_listed(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v)
{
    const struct xm_node *n = v->node;
    uint32_t at;
    bool swap = false;
    if (pat->in && n->n_in == 2 && (xm_op_info(n->op)->flags & XM_OPF_COMMUTES) &&
        s->commuting < XM_PAT_COMMUTING)
        swap = (s->orders >> s->commuting++) & 1;
    for (uint32_t i = 0; pat->in && pat->in[i]; i++) {
        const struct xm_pat *one = xm_pat_operand(pat, i, &at);
        if (!match_operand(s, one, v, swap ? 1 - at : at))
            return false;
    }
    return true;
}

/* Matches the operands that the pattern does not list. */
static bool
match_rest(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v)
{
    uint32_t listed = 0, at;
    while (pat->in && pat->in[listed])
        listed++;
    if (pat->rest == XM_REST_NO_MORE && v->node->n_in != listed)
        return miss(s, v, "has another number of operands than the pattern requires");
    for (uint32_t i = 0; pat->rest == XM_REST_ABSENT && i < v->node->n_in; i++) {
        bool is_listed = false;
        for (uint32_t k = 0; k < listed && !is_listed; k++)
            is_listed = xm_pat_operand(pat, k, &at) && at == i;
        if (!is_listed && !match_operand(s, ABSENT, v, i))
            return false;
    }
    return true;
}

static bool
match_op(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v, bool is_root)
{
    if (v->node->op != pat->op) {
        char what[64] = "";
        if (!s->want_reason)
            return false;
        snprintf(what, sizeof(what), "the pattern requires %s here",
                 xm_op_info(pat->op)->text);
        return miss(s, v, what);
    }
    if (v->index != pat->out)
        return miss(s, v, "is another result than the pattern requires");
    return match_rest(s, pat, v) && enter(s, pat, v, is_root) && match_listed(s, pat, v);
}

static bool
match_linear(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v,
             bool is_root)
{
    static const uint32_t of_matmul[] = {0, 1, 2},
                          of_linear[] = {XM_LINEAR_X, XM_LINEAR_W, XM_LINEAR_BIAS};
    const uint32_t *at = v->node->op == XM_OP_LINEAR ? of_linear : of_matmul;
    if (!xm_is_linear(v->node))
        return miss(s, v, "is not a plain product with a stored matrix");
    return enter(s, pat, v, is_root) && match_operand(s, pat->in[0], v, at[0]) &&
           match_operand(s, pat->in[1], v, at[1]) &&
           match_operand(s, pat->in[2], v, at[2]);
}

static bool
match_through(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v)
{
    while (v->node->op == XM_OP_RESHAPE && v->n_uses == 1)
        v = xm_in(v->node, 0);
    return match(s, pat->in[0], v, false);
}

static bool
match(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v, bool is_root)
{
    float number;
    switch (pat->kind) {
    case XM_PAT_OP:
        return match_op(s, pat, v, is_root);
    case XM_PAT_LINEAR:
        return match_linear(s, pat, v, is_root);
    case XM_PAT_THROUGH:
        return match_through(s, pat, v);
    case XM_PAT_VAR:
    case XM_PAT_MAYBE:
        break;
    case XM_PAT_CONST:
        if (!xm_value_is_const(v))
            return miss(s, v, "is not a constant");
        break;
    case XM_PAT_SCALAR:
        if (!xm_value_is_scalar_const(v, &number) ||
            fabs(number - pat->number) > 1e-6 * fmax(1.0, fabs(pat->number)))
            return miss(s, v, "is not the constant that the pattern requires");
        break;
    case XM_PAT_NUMBER:
        if (!xm_value_is_scalar_const(v, &number))
            return miss(s, v, "is not a constant of one element");
        break;
    case XM_PAT_INTS:
        if (!xm_content_known(&v->content))
            return miss(s, v, "is not a known integer value");
        break;
    default: /* kinds that occur only in replacements */
        return false;
    }
    return bind(s, pat->slot, v);
}

bool
xm_matcher_run(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v,
               bool (*condition)(struct xm_match *m))
{
    struct xm_value *before[XM_MAX_SLOTS];
    const char *why = NULL;
    memcpy(before, s->m->slot, sizeof(before));
    uint32_t most = 0; /* most commuting nodes that an attempt has visited */
    for (s->orders = 0; s->orders < (1u << XM_PAT_COMMUTING); s->orders++) {
        s->commuting = s->matched = 0;
        s->m->why = NULL;
        if (match(s, pat, v, true)) {
            if (!condition || condition(s->m))
                return true;
            s->best = UINT32_MAX; /* matched completely: no failure gets further */
            why = why ? why : s->m->why;
        }
        memcpy(s->m->slot, before, sizeof(before));
        most = s->commuting > most ? s->commuting : most;
        if (s->orders + 1 >= (1u << most))
            break; /* all combinations for the visited nodes have been tried  */
    }
    s->m->why = why;
    return false;
}

bool
xm_match_value(struct xm_match *m, const struct xm_pat *find, struct xm_value *v)
{
    struct xm_matcher s = {.m = m};
    const char *why = m->why;
    bool matches = xm_matcher_run(&s, find, v, NULL);
    m->why = why;
    return matches;
}
