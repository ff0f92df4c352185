/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of the steps of a compiled model, as plugins report them (struct xm_infer_ops).
 *
 * With PERF_COUNT a device measures every launch. A step may launch several kernels, and some of
 * them several times: there is a row for each kernel of a step.
 */
#ifndef XM_PLUGIN_PROFILE_H
#define XM_PLUGIN_PROFILE_H

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_infer;

/* The step number of launches that belong to no step, such as copies of KV cache pages. */
enum { XM_PROFILE_NO_STEP = UINT32_MAX };

/* A kernel of a step, since the last reset. Texts live as long as the compiled model. */
struct xm_profile_row {
    uint32_t step; /* number of the step; rows come in this order, NO_STEP last        */
    /* "primitive", "attention", "copy", "host", "none" */
    const char *kind;
    /* the node's operation, "linear", and its friendly name */
    const char *op, *name;
    const char *type;      /* the layer's type (xm_layer_type); "" if there is no step */
    const char *precision; /* that the step computes in: "f16"                          */
    const char *kernel;    /* the kernel's name; "": the step launches no kernel */
    bool on_host;          /* ns is time on the host */
    uint64_t step_runs;  /* number of runs of the step                                  */
    uint64_t runs, ns;   /* number of launches of the kernel, and their time            */
    uint64_t unmeasured; /* launches whose time is not in ns                            */
    /* The work of the step in all its runs. Only the first row of a step has it; other rows have 0,
     * so that sums over rows are right. */
    uint64_t bytes, multiply_adds;
};
typedef void (*xm_profile_row_fn)(void *ctx, const struct xm_profile_row *row);

/* A launch. Times are nanoseconds of a clock of the device with an arbitrary zero. */
struct xm_trace_row {
    uint32_t step;
    const char *op, *name, *kernel;
    bool on_host;
    uint64_t queued, start, end;
};
typedef void (*xm_trace_row_fn)(void *ctx, const struct xm_trace_row *row);

struct xm_profile_ops {
    /* Waits for the runs, then calls `fn` for each row; every step has one. XM_INVALID: compiled
     * without PERF_COUNT. Any other failure is returned after all rows, and states what could not
     * be measured. */
    enum xm_status (*rows)(struct xm_infer *r, xm_profile_row_fn fn, void *ctx,
                           struct xm_error *err);
    void (*reset)(struct xm_infer *r);
    /* From now on keeps a fixed number of the last launches for `trace`. */
    enum xm_status (*begin_trace)(struct xm_infer *r, struct xm_error *err);
    /* Waits, then calls `fn` for each launch in order of time. *dropped: launches not kept. */
    enum xm_status (*trace)(struct xm_infer *r, xm_trace_row_fn fn, void *ctx,
                            uint64_t *dropped, struct xm_error *err);
};

#ifdef __cplusplus
}
#endif
#endif
