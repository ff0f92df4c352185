/* SPDX-License-Identifier: Apache-2.0
 *
 * Splitting a graph over devices: each rank gets an ordinary graph with its part of the weights, in
 * which all_reduce and all_gather stand where ranks exchange values.
 *
 * Where parts may be cut, and where partial sums may be added, follows from what operations are
 * (graph/algebra.h), node after node in the graph's order: a node takes the assignment of layouts
 * that costs least, counting the bytes of weights that a rank reads and what has to be exchanged
 * before. A partial sum is carried on as long as every reader of it is linear in it, and is added
 * up before the first that is not, once for all readers.
 *
 *     x ──► q k v ──► attention ──► o ──► + x ──► norm     x mirrored; rows of q, k, v and heads
 *      all    rows      heads    columns  sums │   all     split; o's columns split: summands
 *                                              └── all_reduce
 *
 * What is split together (a class: rows of gate and up, columns of down) is cut at the same
 * fractions, between blocks, groups and heads. A mixture of experts is cut across its experts
 * (their width), which loads all ranks alike, or between them: then ranks wait for the one that has
 * most of a token's experts, which is counted. A class that costs more than it saves, as a router
 * of a few rows does, stays whole.
 */
#ifndef XM_TRANSFORMATIONS_SPLIT_SPLIT_H
#define XM_TRANSFORMATIONS_SPLIT_SPLIT_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names of results that are exchanged values: "exchange 3 behind linear blk.0". */
#define XM_SHOWN_EXCHANGE "exchange "
#define XM_SHOWN_BEHIND   " behind "

struct xm_split_wish {
    uint32_t ranks;        /* 2 to XM_MOST_RANKS */
    const double *shares;  /* [ranks] > 0, in any unit; NULL: equal ones */
    double read_rate;      /* bytes of weights that a rank reads a second, > 0  */
    double link_rate;      /* bytes that ranks exchange a second, > 0 */
    double link_latency_s; /* of a message, >= 0 */
    /* read_rate and the link's are ignored: all is split but classes that save less than an eighth
     * of what the median class saves, as a router, which is not worth a message at any size. */
    bool splits_all;
    /* Ranks have layers one after the other (split_layers.c), by their shares of the weights'
     * bytes; read_rate and the link's are ignored. */
    bool by_layer;
    bool by_expert; /* a mixture of experts is cut between its experts, not across them */
    bool halves_sums; /* summands are rounded to f16 and sent so; added as f32 */
    /* For checks: each part also returns every exchanged value that it has, as results after its
     * own. xm_split_whole gives its results the same names, so that both can be compared. */
    bool shows_exchanges;
};

/* Why a value is exchanged. */
enum xm_exchange_kind { XM_EXCHANGE_SUM, XM_EXCHANGE_PARTS, XM_EXCHANGE_PASS };
struct xm_exchange {
    enum xm_exchange_kind kind;
    const struct xm_value *value;  /* of the graph that was split */
    const struct xm_node *because; /* the first reader that needs the whole value */
    uint64_t bytes;                /* of a token, whole */
};

/* A decision for every node of a graph, which must outlive it and stay as it is. */
struct xm_split;
/* XM_INVALID: the wish is out of range. XM_UNSUPPORTED: the graph cannot be cut so often by layer.
 */
enum xm_status xm_split_plan(const struct xm_graph *g, const struct xm_split_wish *wish,
                             struct xm_split **out, struct xm_error *err);
void xm_split_free(struct xm_split *s); /* NULL is allowed */

/* What is exchanged, in the order of a run. Owned by the split. */
const struct xm_exchange *xm_split_exchanges(const struct xm_split *s, uint32_t *n);
/* Bytes of weights that a rank's part has, but for tables that are only looked up. */
enum xm_status xm_split_weight_bytes(const struct xm_split *s, uint32_t rank,
                                     uint64_t *bytes, struct xm_error *err);
/* A line for each exchange. */
void xm_split_print(const struct xm_split *s, struct xm_strbuf *out);
/* A line for all exchanges of one kind and size between the same operations. */
void xm_split_print_kinds(const struct xm_split *s, struct xm_strbuf *out);

/* The graph of a rank, whose exchanges go through `c` (c->rank is the rank); `owner` keeps the
 * split graph's bytes, as for xm_graph_clone. */
enum xm_status xm_split_part(const struct xm_split *s, struct xm_collective *c,
                             struct xm_mapping *owner, struct xm_graph **out,
                             struct xm_error *err);

/* The graph that was split, with every exchanged value as a result behind its others. */
enum xm_status xm_split_whole(const struct xm_split *s, struct xm_mapping *owner,
                              struct xm_graph **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
