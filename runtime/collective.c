/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/collective.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/util/memory.h"

/* y[i] += x[i] for i < n, or y[i] = x[i] if `is_first`. */
static void
add(const float *x, bool is_first, float *y, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = is_first ? x[i] : y[i] + x[i];
}

static void
add_elements(enum xm_element x_element, const struct xm_bytes *all, uint32_t ranks,
             enum xm_element y_element, void *y, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        float sum = xm_load_float(x_element, all[0].p, i);
        for (uint32_t r = 1; r < ranks; r++)
            sum += xm_load_float(x_element, all[r].p, i);
        xm_store_float(y_element, y, i, sum);
    }
}

enum xm_status
xm_collective_sum(struct xm_collective *c, enum xm_element x_element, const void *x,
                  enum xm_element y_element, void *y, uint64_t n, struct xm_error *err)
{
    struct xm_bytes all[XM_MOST_RANKS], mine = {x, 0};
    bool agree = xm_element_bytes(x_element, n, &mine.n);
    XM_TRY(c->ops->meet(c, mine, all, err));
    for (uint32_t r = 0; r < c->ranks; r++)
        agree &= all[r].n == mine.n;
    if (!agree)
        return xm_fail(err, XM_INVALID,
                       "the ranks' partial sums differ in size: all ranks must run the "
                       "same tokens in the same precision");
    if (x_element != XM_F32 || y_element != XM_F32)
        add_elements(x_element, all, c->ranks, y_element, y, n);
    else
        for (uint32_t r = 0; r < c->ranks; r++)
            add((const float *)all[r].p, r == 0, y, n);
    return XM_OK;
}

enum xm_status
xm_collective_sum_as(struct xm_collective *c, enum xm_element message,
                     enum xm_element x_element, void *x, enum xm_element y_element,
                     void *y, uint64_t n, struct xm_error *err)
{
    if (message == XM_DYNAMIC || message == x_element)
        return xm_collective_sum(c, x_element, x, y_element, y, n, err);
    /* x[i] is written after it is read, because the new elements are not larger */
    for (uint64_t i = 0; i < n; i++)
        xm_store_float(message, x, i, xm_load_float(x_element, x, i));
    return xm_collective_sum(c, message, x, y_element, y, n, err);
}

enum xm_status
xm_collective_join(struct xm_collective *c, struct xm_bytes part, uint64_t outer,
                   uint8_t *whole, uint64_t bytes, struct xm_error *err)
{
    struct xm_bytes all[XM_MOST_RANKS];
    uint64_t sum = 0, at = 0;
    XM_TRY(c->ops->meet(c, part, all, err));
    bool fits = outer > 0;
    for (uint32_t r = 0; r < c->ranks && fits; r++)
        fits = all[r].n % outer == 0 && xm_add_size(sum, all[r].n, &sum);
    fits &= sum == bytes;
    for (uint32_t r = 0; r < c->ranks && fits; r++) {
        const uint64_t row = all[r].n / outer;
        for (uint64_t o = 0; o < outer; o++)
            memcpy(whole + o * (bytes / outer) + at, all[r].p + o * row, row);
        at += row;
    }
    return fits ? XM_OK
                : xm_fail(err, XM_INVALID,
                          "the ranks' slices have %" PRIu64
                          " bytes in all, expected %" PRIu64,
                          sum, bytes);
}

static enum xm_status
check_peer(const struct xm_collective *c, uint32_t peer, struct xm_error *err)
{
    if (!c->ops->send || !c->ops->receive)
        return xm_fail(err, XM_UNSUPPORTED,
                       "these ranks cannot send values to each other");
    return peer < c->ranks && peer != c->rank
               ? XM_OK
               : xm_fail(err, XM_INVALID, "rank %u cannot exchange values with rank %u",
                         c->rank, peer);
}

enum xm_status
xm_collective_send(struct xm_collective *c, uint32_t to, struct xm_bytes mine,
                   struct xm_error *err)
{
    XM_TRY(check_peer(c, to, err));
    return mine.n ? c->ops->send(c, to, mine, err) : XM_OK;
}

enum xm_status
xm_collective_receive(struct xm_collective *c, uint32_t from, uint8_t *to, uint64_t n,
                      struct xm_error *err)
{
    XM_TRY(check_peer(c, from, err));
    return n ? c->ops->receive(c, from, to, n, err) : XM_OK;
}

enum xm_status
xm_collective_wait(struct xm_collective *c, struct xm_error *err)
{
    struct xm_bytes all[XM_MOST_RANKS];
    return c->ops->meet(c, (struct xm_bytes){0}, all, err);
}

enum xm_status
xm_collective_agree(struct xm_collective *c, struct xm_bytes mine, const char *what,
                    struct xm_error *err)
{
    struct xm_bytes all[XM_MOST_RANKS];
    XM_TRY(c->ops->meet(c, mine, all, err));
    for (uint32_t r = 0; r < c->ranks; r++) {
        if (all[r].n != mine.n || memcmp(all[r].p, mine.p, mine.n) != 0)
            return xm_fail(err, XM_INVALID, "rank %u has another %s than rank %u", r,
                           what, c->rank);
    }
    return XM_OK;
}

void
xm_rank_group_free(struct xm_rank_group *g)
{
    if (g)
        g->ops->destroy(g);
}

struct xm_collective *
xm_rank_group_rank(struct xm_rank_group *g, uint32_t rank)
{
    return g->ops->rank(g, rank);
}

void
xm_rank_group_reset(struct xm_rank_group *g, struct xm_error *why)
{
    g->ops->reset(g, why);
}
