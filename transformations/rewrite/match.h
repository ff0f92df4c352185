/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to the rewrite engine: one attempt to match a pattern, and the failure that came
 * furthest.
 */
#ifndef XM_TRANSFORMATIONS_REWRITE_MATCH_H
#define XM_TRANSFORMATIONS_REWRITE_MATCH_H

#include "transformations/rewrite/rewrite.h"

struct xm_matcher {
    struct xm_match *m;
    /* bit i: try the i-th commuting node of the pattern with operands swapped */
    uint32_t orders;
    uint32_t commuting; /* commuting nodes met so far in this attempt */
    uint32_t matched;   /* pattern nodes matched so far   */
    /* The failure with the most matched nodes, of all attempts; its text is written only if
     * wanted. */
    bool want_reason;
    uint32_t best;
    char reason[256];
};

/* Tries all orders of operands of the pattern's commuting nodes until the pattern matches and the
 * condition (NULL: none) holds. Restores the slots on failure. */
bool xm_matcher_run(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v,
                    bool (*condition)(struct xm_match *m));

/* Returns element i of a pattern's list of operands; *at: the number of the operand that it applies
 * to. */
const struct xm_pat *xm_pat_operand(const struct xm_pat *pat, uint32_t i, uint32_t *at);

/* Builds a rule's replacement for m->root, before that node. NULL: no implementation can run it
 * (*why is the reason), the rule declines (m->why), or there was a failure (graph->err); then the
 * nodes built so far have been removed. */
struct xm_value *xm_replacement_build(struct xm_match *m, const struct xm_rule *rule,
                                      const char **why);
/* Removes the nodes before m->root that were built since graph->next_id was `next_id`. */
void xm_replacement_undo(struct xm_match *m, uint32_t next_id);

#endif
