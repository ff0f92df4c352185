/* SPDX-License-Identifier: Apache-2.0
 *
 * One matmul of oneDNN on any of its engines: its formula, its description for oneDNN, and its run.
 * The CPU engine and the GPU engine get the same descriptors and attributes, so that tests on the
 * CPU engine show whether these are right.
 *
 *     y[m,n] = act(x[m,k] W[n,k]^T + bias[n]) * times[m,n]
 *
 * Groups of rows need oneDNN's grouped memory, which is experimental (onednn_grouped.h).
 *
 * oneDNN's weights are [k,n]: it reads W's rows in place as its columns, with strides {1, k}. Its
 * scales and zero points are [k / group, n] in that order (onednn_weight.h). Accumulation is
 * oneDNN's own, f32.
 */
#ifndef XM_PRIMITIVES_ONEDNN_ONEDNN_MATMUL_H
#define XM_PRIMITIVES_ONEDNN_ONEDNN_MATMUL_H

#include <dnnl.h>

#include "primitives/onednn/onednn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of memory of an argument. */
enum xm_onednn_memory { XM_ONEDNN_HOST, XM_ONEDNN_USM, XM_ONEDNN_CL };
struct xm_onednn_handle {
    void *at; /* NULL: the argument is absent */
    enum xm_onednn_memory kind;
};

/* struct xm_onednn_spans (onednn.h) resolved to addresses. */
struct xm_onednn_handles {
    struct xm_onednn_handle arg[XM_ONEDNN_ARG_COUNT];
    uint64_t most_rows;
};

/* Creates a dnnl_memory for handles of kinds other than XM_ONEDNN_HOST; NULL: there are no such
 * handles. */
typedef dnnl_status_t (*xm_onednn_make_memory)(dnnl_memory_t *out,
                                               const_dnnl_memory_desc_t desc,
                                               dnnl_engine_t engine,
                                               const struct xm_onednn_handle *handle);

/* Turns off oneDNN's error messages on standard output, which belongs to the program, unless
 * ONEDNN_VERBOSE asks for them; errors also come back as status. Call it before any other function
 * of oneDNN. */
void xm_onednn_be_quiet(void);

/* Returns the engine's description of an implementation for the problem; the caller destroys it
 * with dnnl_primitive_desc_destroy. NULL: there is no implementation. */
dnnl_primitive_desc_t xm_onednn_describe(dnnl_engine_t engine,
                                         const struct xm_onednn_problem *p);
/* Returns the name of the implementation, e.g. "brg_matmul:avx512_core" or "ocl:gemm:any"; it lives
 * as long as the description. */
const char *xm_onednn_implementation(const_dnnl_primitive_desc_t pd);
/* Returns whether the implementation of that name is reference code: correct, but slow. */
bool xm_onednn_is_reference(const char *implementation);
/* Returns the bytes of argument XM_ONEDNN_SCRATCHPAD. */
uint64_t xm_onednn_scratchpad_bytes(const_dnnl_primitive_desc_t pd);

/* Enqueues a primitive that was created for problem `p`, in the stream's order; does not wait. */
dnnl_status_t xm_onednn_execute(dnnl_primitive_t primitive, dnnl_engine_t engine,
                                dnnl_stream_t stream, const struct xm_onednn_problem *p,
                                const struct xm_onednn_handles *handles,
                                xm_onednn_make_memory make);

#ifdef __cplusplus
}
#endif
#endif
