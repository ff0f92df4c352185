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

/* Tries every order of the pattern's commuting nodes; slots are restored on failure. */
bool xm_matcher_run(struct xm_matcher *s, const struct xm_pat *pat, struct xm_value *v);

#endif
