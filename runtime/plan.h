/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory planning: from the lifetimes of a program's values to their offsets.
 *
 *     offset
 *       ^   +-----------+
 *       |   |     c     |            Two items may share bytes when their lifetimes, the steps
 *       |   +--------+--+---+        [first, last], do not meet. Items are placed largest first,
 *       |   |   a    |  b   |        each into the smallest gap that takes it.
 *       +---+--------+------+--> steps
 *
 * A block is one allocation. A new block is begun when an item fits into no block without making it
 * larger than the device's largest allocation. Equal items give an equal plan. An item is not moved
 * during its lifetime.
 */
#ifndef XM_RUNTIME_PLAN_H
#define XM_RUNTIME_PLAN_H

#include <stdint.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_plan_item {
    uint64_t bytes;       /* 0 takes no space                        */
    uint32_t first, last; /* first and last step that use it         */
    uint32_t block;       /* out                                     */
    uint64_t offset;      /* out: bytes from the start of its block  */
};

struct xm_plan {
    uint64_t total_bytes;
    uint32_t n_blocks;
    uint64_t *block_bytes; /* n_blocks entries, owned */
};

/* Places `items`: sets block and offset of each. Every offset is a multiple of `alignment` (> 0),
 * no block has more than max_block_bytes. XM_NO_MEMORY: an item is larger than that; the message
 * names it. Initialises *plan in every case; xm_plan_free() is allowed after a failure. */
enum xm_status xm_plan_make(struct xm_plan_item *items, uint32_t n_items,
                            uint64_t max_block_bytes, uint32_t alignment,
                            struct xm_plan *plan, struct xm_error *err);
void xm_plan_free(struct xm_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
