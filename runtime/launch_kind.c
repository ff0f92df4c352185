/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/launch_kind.h"

#include "runtime/engine.h"

static struct xm_launch_kind
kind_of(const struct xm_launch *l)
{
    enum { WIDE = 65535 };
    struct xm_launch_kind kind = {0};
    for (int d = 0; d < 3; d++) {
        kind.local[d] = l->local[d];
        kind.global[d] = l->local[0] ? 0 : l->global[d];
        kind.wide |= l->global[d] >= WIDE;
    }
    return kind;
}

/* Compares members, not by memcmp, because padding bytes are undefined. */
static bool
is_same(const struct xm_launch_kind *a, const struct xm_launch_kind *b)
{
    for (int d = 0; d < 3; d++) {
        if (a->local[d] != b->local[d] || a->global[d] != b->global[d])
            return false;
    }
    return a->wide == b->wide;
}

bool
xm_launch_kinds_add(struct xm_launch_kinds *kinds, const struct xm_launch *launch)
{
    const struct xm_launch_kind kind = kind_of(launch);
    for (uint32_t i = 0; i < kinds->n; i++) {
        if (is_same(&kinds->list[i], &kind))
            return false;
    }
    if (kinds->n == XM_MOST_LAUNCH_KINDS)
        return false;
    kinds->list[kinds->n++] = kind;
    return true;
}
