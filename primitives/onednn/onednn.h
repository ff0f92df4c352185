/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN's GPU engine on our device, with our context, in-order queue and buffers. This header uses
 * no type of oneDNN, so that callers compile without it.
 *
 *   xm_onednn          the engine of one device; programs that use oneDNN hold it open
 *   xm_onednn_matmul   one matmul of fixed sizes, built; shared by steps of equal sizes
 *   xm_onednn_stream   a queue of ours as oneDNN sees it, for the length of one run
 *
 * Only Intel GPUs have the engine, and only in builds with a oneDNN that was built for OpenCL;
 * everywhere else xm_onednn_refuses says why not. PERF_COUNT measures a matmul as one launch,
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
 * With groups (experts) the rows of x, y and times are sorted by group, and each group has its own
 * W: W[groups,n,k], with scales and zero points of the same order. m is the most rows of all groups
 * together, at least one for each group; the device reads where the rows of a group end. No bias.
 * */
struct xm_onednn_problem {
    uint64_t m, n, k;
    uint64_t groups; /* 0: all rows are multiplied by one W */
    /* elements from one row of y, of times, to the next; 0: n */
    uint64_t y_step, times_step;
    enum xm_element x, w, y;
    /* elements along k that share a scale; 0: W is not quantised */
    uint64_t group;
    enum xm_element scale;      /* of a quantised W */
    enum xm_element zero_point; /* u4 i4 u8 i8; XM_DYNAMIC: none */
    bool one_zero_point;        /* one zero point of 8 bits for all of W */
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
    XM_ONEDNN_ENDS, /* i32 [groups]: rows of this group and all before it */
    XM_ONEDNN_Y,
    XM_ONEDNN_SCRATCHPAD,
    XM_ONEDNN_ARG_COUNT
};

/* The bytes of a buffer from `offset` on; buffer NULL: the argument is absent. The offset into a
 * cl_mem must be a multiple of the device's base_align. */
struct xm_onednn_span {
    struct xm_buffer *buffer;
    uint64_t offset;
};
struct xm_onednn_spans {
    struct xm_onednn_span arg[XM_ONEDNN_ARG_COUNT];
    uint64_t most_rows; /* most rows of one group, at most m; 0: not known */
    /* of the launch in measurements, a static string; NULL: not measured */
    const char *name;
};

struct xm_onednn;
struct xm_onednn_matmul;
struct xm_onednn_stream;

/* Returns NULL if a oneDNN engine can be opened on this device, else the reason, a static
 * string. */
const char *xm_onednn_refuses(struct xm_engine *engine);
/* Returns whether an engine could be opened on a device of this kind, for engines without a device
 * that only count memory. */
bool xm_onednn_could_open(const struct xm_device_info *device);
/* Opens the engine, or adds a reference to the open one. Call it before the first inference,
 * because oneDNN may compile kernels. */
enum xm_status xm_onednn_open(struct xm_engine *engine, struct xm_onednn **out,
                              struct xm_error *err);
/* Returns a new reference to the engine that is open on this device; NULL: none is. */
struct xm_onednn *xm_onednn_of(const struct xm_engine *engine);
void xm_onednn_unref(struct xm_onednn *o); /* NULL is allowed */

/* Returns NULL if oneDNN has optimised code for this problem (in a dry run any code), else the
 * reason, a static string. */
const char *xm_onednn_declines(struct xm_onednn *o, const struct xm_onednn_problem *p);
/* Builds the matmul for a problem or finds the one built before; *out is a new reference, which
 * holds the engine open. */
enum xm_status xm_onednn_matmul_get(struct xm_onednn *o,
                                    const struct xm_onednn_problem *p,
                                    struct xm_onednn_matmul **out, struct xm_error *err);
void xm_onednn_matmul_put(struct xm_onednn_matmul *m); /* NULL is allowed */
/* Returns the bytes of the scratchpad that the caller must pass to each run. */
uint64_t xm_onednn_matmul_scratch(const struct xm_onednn_matmul *m);

/* Creates a stream for our queue; xm_onednn_end destroys it. */
enum xm_status xm_onednn_begin(struct xm_onednn *o, struct xm_queue *queue,
                               struct xm_onednn_stream **out, struct xm_error *err);
/* Enqueues the matmul; does not wait. */
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
    uint32_t power; /* the piece has 2^power rows */
    uint64_t first; /* its first row */
};
static inline uint64_t
xm_onednn_piece_rows(uint32_t power)
{
    return UINT64_C(1) << power;
}
/* Returns the piece that follows the first `done` of `rows` rows; done < rows, 2^least <= rows. */
struct xm_onednn_piece xm_onednn_piece_at(uint64_t rows, uint64_t done, uint32_t least,
                                          uint32_t most);
/* Returns the largest power whose piece has at most `rows` rows; at least `least`. */
uint32_t xm_onednn_largest_piece(uint64_t rows, uint32_t least);

#ifdef __cplusplus
}
#endif
#endif
