/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks for tests: threads over a simulated network that delays, reorders and loses messages. A
 * seed and the message determine what happens to it, whatever the order of threads is.
 *
 * In a meeting each rank sends a message to each other rank. Bytes are copied as late as the rules
 * of collective.h allow, and copies are overwritten as early as they allow: code that breaks these
 * rules gets wrong results.
 */
#ifndef XM_RUNTIME_FAKE_FAKE_RANKS_H
#define XM_RUNTIME_FAKE_FAKE_RANKS_H

#include "runtime/collective.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_fake_network {
    uint64_t seed;
    /* greatest delay; each message has its own, so that later ones can overtake */
    double delay_s;
    uint32_t lost_one_in; /* one message in this many is lost; 0: none */
    /* seconds after which a waiting rank treats a message as lost */
    double patience_s;
};

/* Creates a group of 1 to XM_MOST_RANKS ranks. NULL: no memory, or another number of ranks. */
struct xm_rank_group *xm_fake_group_create(uint32_t ranks,
                                           const struct xm_fake_network *network);

#ifdef __cplusplus
}
#endif
#endif
