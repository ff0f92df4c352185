/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN's GPU engine on our device: same context, same in-order queue, our buffers. Knows
 * no type of oneDNN, so that callers compile without it.
 *
 *   xm_onednn          the engine of one device; programs that use oneDNN hold it open
 *   xm_onednn_matmul   one matmul of fixed sizes, built; shared by steps of equal sizes
 *   xm_onednn_stream   a queue of ours as oneDNN sees it, for the length of one run
 *
 * Only Intel GPUs have one, and only in builds with a oneDNN that was built for OpenCL;
 * everywhere else there is a sentence that says so. PERF_COUNT measures a matmul as one launch,
 * whatever oneDNN enqueues for it.
 */
#ifndef XM_PRIMITIVES_ONEDNN_ONEDNN_H
#define XM_PRIMITIVES_ONEDNN_ONEDNN_H

#include "primitives/primitive.h"
#include "runtime/reference/reference.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y[m,n] = act(x[m,k] W[n,k]^T + bias[n]) * times[m,n]; zero-initialise it.
 *
 * With groups the rows of x, y and times lie group after group, and each group has a W of its
 * own: W[groups,n,k], its scales and zero points alike. m is the most rows there can be in all,
 * at least one a group; where a group's rows end is read on the device. No bias. */
struct xm_onednn_problem {
    uint64_t m, n, k;
    uint64_t groups;             /* 0: all rows meet one W */
    uint64_t y_step, times_step; /* elements from row to row of each; 0: n */
    enum xm_element x, w, y;
    uint64_t group;             /* k that share a scale; 0: W is not quantised */
    enum xm_element scale;      /* when quantised */
    enum xm_element zero_point; /* u4 i4 u8 i8; XM_DYNAMIC: none */
    bool one_zero_point;        /* for all of W, in 8 bits */
    bool bias;                  /* f32 */
    bool times;                 /* of y's type */
    bool activated;             /* act is not the identity */
    enum xm_activation activation;
    float beta; /* of swish */
};

enum xm_onednn_arg {
    XM_ONEDNN_X,
    XM_ONEDNN_W,
    XM_ONEDNN_SCALE,      /* [k / group, n] */
    XM_ONEDNN_ZERO_POINT, /* [k / group, n], or one */
    XM_ONEDNN_BIAS,
    XM_ONEDNN_TIMES,
    XM_ONEDNN_ENDS, /* i32 [groups]: rows of the groups up to and with each */
    XM_ONEDNN_Y,
    XM_ONEDNN_SCRATCHPAD,
    XM_ONEDNN_ARG_COUNT
};

/* Bytes from `offset` of a buffer on; buffer NULL: the argument is absent. Offsets into a
 * cl_mem are multiples of the device's base_align. */
struct xm_onednn_span {
    struct xm_buffer *buffer;
    uint64_t offset;
};
struct xm_onednn_spans {
    struct xm_onednn_span arg[XM_ONEDNN_ARG_COUNT];
    uint64_t most_rows; /* no group has more; at most m; 0: not known */
    const char *name;   /* in measurements, static; NULL: it is in none */
};

struct xm_onednn;
struct xm_onednn_matmul;
struct xm_onednn_stream;

/* NULL: a oneDNN engine can be opened on this device; else a static sentence. */
const char *xm_onednn_refuses(struct xm_engine *engine);
/* Whether one could be on a device of this kind, for engines that only count. */
bool xm_onednn_could_open(const struct xm_device_info *device);
/* Opens it, or gives the one that is open another reference. Before the first inference:
 * it may compile. */
enum xm_status xm_onednn_open(struct xm_engine *engine, struct xm_onednn **out,
                              struct xm_error *err);
/* The one that is open on this device, referenced; NULL: none is. */
struct xm_onednn *xm_onednn_of(const struct xm_engine *engine);
void xm_onednn_unref(struct xm_onednn *o); /* NULL is allowed */

/* NULL: oneDNN has more than reference code for this problem (in a dry run any code will
 * do); else a static sentence. */
const char *xm_onednn_declines(struct xm_onednn *o, const struct xm_onednn_problem *p);
/* The matmul for a problem, referenced; holds the engine open. */
enum xm_status xm_onednn_matmul_get(struct xm_onednn *o,
                                    const struct xm_onednn_problem *p,
                                    struct xm_onednn_matmul **out, struct xm_error *err);
void xm_onednn_matmul_put(struct xm_onednn_matmul *m); /* NULL is allowed */
/* Bytes of the scratchpad that the caller must pass to each call. */
uint64_t xm_onednn_matmul_scratch(const struct xm_onednn_matmul *m);

enum xm_status xm_onednn_begin(struct xm_onednn *o, struct xm_queue *queue,
                               struct xm_onednn_stream **out, struct xm_error *err);
/* Enqueues; does not wait. */
enum xm_status xm_onednn_matmul_run(struct xm_onednn_matmul *m,
                                    struct xm_onednn_stream *stream,
                                    const struct xm_onednn_spans *spans,
                                    struct xm_error *err);
void xm_onednn_end(struct xm_onednn_stream *stream); /* NULL is allowed */

/* ---- row counts --------------------------------------------------------------------- */

/* Rows are multiplied in pieces of 2^least … 2^most, so that any number of them needs few
 * matmuls. The last piece reaches back over rows already done rather than beyond the end:
 * nothing is padded, and what is computed twice is the same twice.
 *
 *     rows 100, pieces of 4 … 512:    [0, 64)  [36, 100)
 */
enum { XM_ONEDNN_PIECES = 10 }; /* 2^0 … 2^9 */
struct xm_onednn_piece {
    uint32_t power; /* it has 2^power rows, */
    uint64_t first; /* from this one on */
};
static inline uint64_t
xm_onednn_piece_rows(uint32_t power)
{
    return UINT64_C(1) << power;
}
/* The piece that goes on after row `done` of `rows`; done < rows, 2^least <= rows. */
struct xm_onednn_piece xm_onednn_piece_at(uint64_t rows, uint64_t done, uint32_t least,
                                          uint32_t most);
/* The largest power of at most `rows` rows, and of at least `least`. */
uint32_t xm_onednn_largest_piece(uint64_t rows, uint32_t least);

#ifdef __cplusplus
}
#endif
#endif
