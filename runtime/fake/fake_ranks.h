/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks for tests, which are threads over a network that delays, reorders and loses messages, by a
 * seed: the fate of a message does not depend on the order of threads.
 *
 * A meeting is a message of each rank to each other one. Bytes are copied as late as a collective's
 * rules allow, and copies are overwritten as early: who breaks these rules gets other results.
 */
#ifndef XM_RUNTIME_FAKE_FAKE_RANKS_H
#define XM_RUNTIME_FAKE_FAKE_RANKS_H

#include "runtime/collective.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_fake_network {
    uint64_t seed;
    double delay_s; /* at most; each message has one of its own, so later ones overtake */
    uint32_t lost_one_in; /* messages; 0: none is lost */
    double
        patience_s; /* a rank that has waited so long for a message takes it for lost */
};

/* 1 to XM_MOST_RANKS ranks. NULL: no memory, or another number. */
struct xm_rank_group *xm_fake_group_create(uint32_t ranks,
                                           const struct xm_fake_network *network);

#ifdef __cplusplus
}
#endif
#endif
