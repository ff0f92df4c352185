/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the tables that the integers of a value index, and how many rows these have.
 *
 *     ids ──► convert, reshape, … ──► gather(table[rows, columns], ids, axis 0)
 *
 * Devices do not agree on what an index outside a table reads. Requests use this to check the
 * values that users give.
 */
#include "transformations/graph/table_rows.h"

enum { MOST_HOPS = 8 }; /* most conversions and reshapes between ids and gather */

static bool
keeps_numbers(enum xm_op op)
{
    return op == XM_OP_CONVERT || op == XM_OP_RESHAPE || op == XM_OP_SQUEEZE ||
           op == XM_OP_UNSQUEEZE;
}

/* The number of rows of the table if this use is a gather of rows; else UINT64_MAX. */
static uint64_t
rows_of(const struct xm_use *u)
{
    const struct xm_node *n = u->user;
    if (n->op != XM_OP_GATHER || u != &n->in[1])
        return UINT64_MAX;
    const struct xm_shape *table = &xm_in(n, 0)->type.shape;
    return table->rank == 2 && xm_dim_is_const(table->dim[0]) ? (uint64_t)table->dim[0].n
                                                              : UINT64_MAX;
}

static uint64_t
rows_within(const struct xm_value *ids, int hops)
{
    uint64_t least = UINT64_MAX;
    for (const struct xm_use *u = ids->uses; u; u = u->next) {
        uint64_t rows = rows_of(u);
        if (hops && keeps_numbers(u->user->op) && u == &u->user->in[0])
            rows = rows_within(&u->user->out[0], hops - 1);
        least = rows < least ? rows : least;
    }
    return least;
}

uint64_t
xm_value_table_rows(const struct xm_value *ids)
{
    const uint64_t least =
        xm_element_is_int(ids->type.element) ? rows_within(ids, MOST_HOPS) : UINT64_MAX;
    return least == UINT64_MAX ? 0 : least;
}
