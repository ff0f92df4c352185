/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits a graph over devices: each rank gets an ordinary graph with its part of the weights. Nodes
 * all_reduce and all_gather are inserted where ranks must exchange values.
 *
 * How values may be cut, and where partial sums may be added up, follows from the algebra of the
 * operations (graph/algebra.h). Node after node, in the graph's order, gets the assignment of
 * layouts that costs least: the time to read the rank's part of the weights, and to exchange values
 * before the node. A partial sum stays partial as long as every node that reads it is linear in it;
 * it is added up before the first reader that is not, once for all readers.
 *
 *     x ──► q k v ──► attention ──► o ──► + x ──► norm
 *      all    rows      heads    columns  sums │   all
 *                                              └── all_reduce
 *
 * Here all ranks have x. The rows of the weights of q, k and v are split, and so are the heads. The
 * columns of o's weight are split, so that each rank has a summand of its result.
 *
 * Dimensions that must be split together (a "class": rows of gate and up, columns of down) are cut
 * at the same fractions, between blocks, groups and heads. A mixture of experts is cut across its
 * experts (along their inner dimension), which loads all ranks alike, or between experts: then
 * ranks wait for the one that has most of a token's experts, and the cost includes that. A class
 * that costs more than it saves, such as a router with few rows, is not split.
 */
#ifndef XM_TRANSFORMATIONS_SPLIT_SPLIT_H
#define XM_TRANSFORMATIONS_SPLIT_SPLIT_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parts of the names of results that show exchanged and inner values, such as
 * "exchange 3 behind linear blk.0": kind, number, and the step that computes the value. */
#define XM_SHOWN_EXCHANGE "exchange "
#define XM_SHOWN_INNER    "inner "
#define XM_SHOWN_BEHIND   " behind "

struct xm_split_wish {
    uint32_t ranks; /* 1 to XM_MOST_RANKS; 1: nothing is split or exchanged */
    /* [ranks], each > 0, relative sizes of the parts; NULL: equal */
    const double *shares;
    double read_rate;      /* bytes of weights that a rank reads a second, > 0  */
    double link_rate;      /* bytes that ranks exchange a second, > 0 */
    double link_latency_s; /* seconds for a message, >= 0 */
    /* Ignores read_rate and the rates of the link: splits all classes except those that save less
     * than an eighth of what the median class saves, such as a router, which are not worth a
     * message at any size. */
    bool splits_all;
    /* Gives each rank some consecutive layers instead (split_layers.c), by its share of the
     * weights' bytes; ignores read_rate and the rates of the link. */
    bool by_layer;
    bool by_expert; /* cuts mixtures of experts between experts, not across them        */
    bool halves_sums; /* rounds summands to f16 and sends them so; adds them in f32 */
    /* For checks: each part also returns every exchanged value that it has, as results after its
     * own. xm_split_whole returns the same values under the same names, so that both can be
     * compared. */
    bool shows_exchanges;
    /* With shows_exchanges: also shows inner values, the floating-point results of all steps. If a
     * rank has only a part or a summand of one, the whole value is gathered or added up for the
     * check, after the steps of the model, which stay as they are. */
    bool shows_inner;
};

/* Why a value is exchanged. */
enum xm_exchange_kind { XM_EXCHANGE_SUM, XM_EXCHANGE_PARTS, XM_EXCHANGE_PASS };
struct xm_exchange {
    enum xm_exchange_kind kind;
    const struct xm_value *value;  /* value of the original graph */
    const struct xm_node *because; /* first reader that needs the whole value     */
    uint64_t bytes;                /* bytes of the whole value for one token */
};

/* The decisions for every node of a graph, which must outlive it unchanged. */
struct xm_split;
/* Decides how to split a graph. XM_INVALID: the wish is out of range. XM_UNSUPPORTED: the graph has
 * too few layers to be split by layer. */
enum xm_status xm_split_plan(const struct xm_graph *g, const struct xm_split_wish *wish,
                             struct xm_split **out, struct xm_error *err);
void xm_split_free(struct xm_split *s); /* NULL is allowed */

/* The exchanges in the order of a run; owned by the split. */
const struct xm_exchange *xm_split_exchanges(const struct xm_split *s, uint32_t *n);
/* Bytes of weights in a rank's part, without tables that are only looked up. */
enum xm_status xm_split_weight_bytes(const struct xm_split *s, uint32_t rank,
                                     uint64_t *bytes, struct xm_error *err);
/* Appends a line for each exchange. */
void xm_split_print(const struct xm_split *s, struct xm_strbuf *out);
/* Appends one line for all exchanges that have the same kind and size and are between the same
 * operations. */
void xm_split_print_kinds(const struct xm_split *s, struct xm_strbuf *out);

/* Makes the graph of a rank, whose exchanges go through `c` (c->rank is the rank). `owner` keeps
 * the bytes of the split graph alive, as for xm_graph_clone. */
enum xm_status xm_split_part(const struct xm_split *s, struct xm_collective *c,
                             struct xm_mapping *owner, struct xm_graph **out,
                             struct xm_error *err);

/* Results for ranks that have no part of the model. Ranks are numbered as in `c`, to which all
 * belong, with and without a part. `whole` is the graph that was split.
 *
 * Adds to the part of one rank that it sends each result of `whole` to the ranks r with
 * takes[r]. */
enum xm_status xm_split_give_results(const struct xm_graph *whole, struct xm_graph *part,
                                     struct xm_collective *c, const bool *takes,
                                     struct xm_error *err);
/* Makes the graph of a rank without a part, which receives each result from rank `from`. `owner` as
 * for xm_split_part. */
enum xm_status xm_split_take_results(const struct xm_graph *whole,
                                     struct xm_collective *c, uint32_t from,
                                     struct xm_mapping *owner, struct xm_graph **out,
                                     struct xm_error *err);

/* Copies the original graph and adds every exchanged value as a result after its own. */
enum xm_status xm_split_whole(const struct xm_split *s, struct xm_mapping *owner,
                              struct xm_graph **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
