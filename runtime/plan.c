/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/memory.h"

/* Order of placement: largest first; ties by first step, then by index, so that the
 * result does not depend on the sort. */
struct rank {
    uint64_t bytes;
    uint32_t first, item;
};

struct planner {
    struct xm_plan_item *items;
    uint32_t *placed; /* indices of placed items, ordered by block and offset */
    uint32_t n_placed;
    uint64_t max_block;
    uint32_t alignment;
    struct xm_plan *plan;
};

struct place {
    bool found;
    uint32_t block;
    uint64_t offset;
    uint64_t waste; /* bytes left in the gap, or by which the block grows */
    bool grows;
};

static int
compare_ranks(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static bool
lives_meet(const struct xm_plan_item *a, const struct xm_plan_item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Keeps the better of two places: one inside a block is better than one that makes a block grow;
 * then less waste is better; of equal ones the first. */
static void
offer(struct place *best, struct place p)
{
    if (!best->found || (best->grows && !p.grows) ||
        (best->grows == p.grows && p.waste < best->waste)) {
        *best = p;
        best->found = true;
    }
}

/* Offers the gaps of `block` into which `item` fits, and the room at its end. *at is the index in
 * `placed` of the block's first item, and is moved behind its last. */
static void
scan_block(const struct planner *p, const struct xm_plan_item *item, uint32_t block,
           uint32_t *at, struct place *best)
{
    uint64_t end = 0; /* end of the items with overlapping lifetimes so far */
    for (; *at < p->n_placed; (*at)++) {
        const struct xm_plan_item *other = &p->items[p->placed[*at]];
        if (other->block != block)
            break;
        if (!lives_meet(item, other))
            continue;
        uint64_t start = xm_align_up(end, p->alignment);
        if (start <= other->offset && item->bytes <= other->offset - start)
            offer(best, (struct place){.block = block,
                                       .offset = start,
                                       .waste = other->offset - start - item->bytes});
        if (other->offset + other->bytes > end)
            end = other->offset + other->bytes;
    }
    uint64_t start = xm_align_up(end, p->alignment);
    uint64_t size = p->plan->block_bytes[block];
    if (start > p->max_block || item->bytes > p->max_block - start)
        return;
    bool grows = start + item->bytes > size;
    uint64_t waste = grows ? start + item->bytes - size : size - start - item->bytes;
    offer(best, (struct place){
                    .block = block, .offset = start, .waste = waste, .grows = grows});
}

static void
insert_placed(struct planner *p, uint32_t index)
{
    const struct xm_plan_item *item = &p->items[index];
    uint32_t at = p->n_placed++;
    for (; at > 0; at--) {
        const struct xm_plan_item *before = &p->items[p->placed[at - 1]];
        if (before->block < item->block ||
            (before->block == item->block && before->offset <= item->offset))
            break;
        p->placed[at] = p->placed[at - 1];
    }
    p->placed[at] = index;
}

static void
place_item(struct planner *p, uint32_t index)
{
    struct xm_plan_item *item = &p->items[index];
    struct place best = {0};
    uint32_t at = 0;
    for (uint32_t block = 0; block < p->plan->n_blocks; block++)
        scan_block(p, item, block, &at, &best);
    if (!best.found) {
        best.block = p->plan->n_blocks++;
        p->plan->block_bytes[best.block] = 0;
    }
    item->block = best.block;
    item->offset = best.offset;
    uint64_t *size = &p->plan->block_bytes[best.block];
    if (item->offset + item->bytes > *size) {
        p->plan->total_bytes += item->offset + item->bytes - *size;
        *size = item->offset + item->bytes;
    }
    insert_placed(p, index);
}

static enum xm_status
check_item(const struct xm_plan_item *item, uint32_t index, uint64_t max_block,
           struct xm_error *err)
{
    if (item->first > item->last)
        return xm_fail(err, XM_INVALID, "plan item %u lives from step %u to step %u",
                       index, item->first, item->last);
    if (item->bytes > max_block)
        return xm_fail(err, XM_NO_MEMORY,
                       "a value of %" PRIu64
                       " bytes (plan item %u) exceeds the largest allocation, %" PRIu64
                       " bytes",
                       item->bytes, index, max_block);
    return XM_OK;
}

enum xm_status
xm_plan_make(struct xm_plan_item *items, uint32_t n_items, uint64_t max_block_bytes,
             uint32_t alignment, struct xm_plan *plan, struct xm_error *err)
{
    *plan = (struct xm_plan){0};
    for (uint32_t i = 0; i < n_items; i++)
        XM_TRY(check_item(&items[i], i, max_block_bytes, err));

    struct rank *order = xm_calloc(n_items, sizeof(*order));
    uint32_t *placed = xm_calloc(n_items, sizeof(*placed));
    plan->block_bytes = xm_calloc(n_items, sizeof(*plan->block_bytes));
    enum xm_status status = XM_OK;
    if (!order || !placed || !plan->block_bytes) {
        status = xm_fail(err, XM_NO_MEMORY, "out of memory to plan %u values", n_items);
        goto done;
    }
    for (uint32_t i = 0; i < n_items; i++)
        order[i] = (struct rank){items[i].bytes, items[i].first, i};
    qsort(order, n_items, sizeof(*order), compare_ranks);

    struct planner p = {.items = items,
                        .placed = placed,
                        .max_block = max_block_bytes,
                        .alignment = alignment,
                        .plan = plan};
    for (uint32_t i = 0; i < n_items; i++) {
        if (order[i].bytes) {
            place_item(&p, order[i].item);
        } else {
            items[order[i].item].block = 0;
            items[order[i].item].offset = 0;
        }
    }
done:
    xm_free(order);
    xm_free(placed);
    return status;
}

void
xm_plan_free(struct xm_plan *plan)
{
    xm_free(plan->block_bytes);
    *plan = (struct xm_plan){0};
}
