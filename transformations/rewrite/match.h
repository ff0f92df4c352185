/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the rewrite engine: one attempt to match, with its furthest failure.
 */
#ifndef XM_TRANSFORMATIONS_REWRITE_MATCH_H
#define XM_TRANSFORMATIONS_REWRITE_MATCH_H

#include "transformations/rewrite/rewrite.h"

struct xm_matcher {
    struct xm_match *m;
    uint32_t orders; /* bit i: the i-th commuting node of the pattern is tried swapped */
    uint32_t commuting; /* commuting nodes met so far in this attempt */
    uint32_t matched;   /* pattern nodes matched so far   */
    /* The furthest failure of all attempts; texts are only written when wanted. */
    bool want_reason;
    uint32_t best;
    char reason[256];
};

/* Tries every order of the pattern's commuting nodes until the condition (NULL: none) holds as
 * well; slots are restored on failure. */
bool xm_matcher_run(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v,
                    bool (*condition)(struct xm_match *m));

/* Element i of a pattern's list of operands: returns its pattern; *at is the number of the operand
 * that the pattern applies to. */
const struct xm_pat *xm_pat_operand(const struct xm_pat *pat, uint32_t i, uint32_t *at);

/* Builds a rule's replacement for m->root, before that node. NULL: no implementation can run it
 * (*why has the reason), the rule declines (m->why), or a failure in graph->err; the nodes built so
 * far have been removed. */
struct xm_value *xm_replacement_build(struct xm_match *m, const struct xm_rule *rule,
                                      const char **why);
/* Removes the nodes before m->root that were built since the graph had `next_id`. */
void xm_replacement_undo(struct xm_match *m, uint32_t next_id);

#endif
