/* SPDX-License-Identifier: Apache-2.0
 *
 * One matmul of oneDNN on any of its engines: what it computes, how oneDNN is told, and how
 * it is run. The CPU engine and the GPU engine are given the same descriptors and attributes,
 * so that the CPU engine's results say whether those mean what they should.
 *
 *     y[m,n] = act(x[m,k] W[n,k]^T + bias[n]) * times[m,n]
 *
 * Groups of rows are oneDNN's grouped memory, which is experimental: builds of oneDNN have it
 * or not (onednn_grouped.h).
 *
 * oneDNN's weights are [k,n]: W's rows are its columns, read with strides {1, k}, where they
 * lie. Its scales and zero points are [k / group, n] in that order (onednn_weight.h).
 * Accumulation is oneDNN's own, f32.
 */
#ifndef XM_PRIMITIVES_ONEDNN_ONEDNN_MATMUL_H
#define XM_PRIMITIVES_ONEDNN_ONEDNN_MATMUL_H

#include <dnnl.h>

#include "primitives/onednn/onednn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the bytes of an argument are. */
enum xm_onednn_memory { XM_ONEDNN_HOST, XM_ONEDNN_USM, XM_ONEDNN_CL };
struct xm_onednn_handle {
    void *at; /* NULL: the argument is absent */
    enum xm_onednn_memory kind;
};

/* Spans (onednn.h) as addresses. */
struct xm_onednn_handles {
    struct xm_onednn_handle arg[XM_ONEDNN_ARG_COUNT];
    uint64_t most_rows;
};

/* A dnnl_memory_create for handles of kinds other than HOST; NULL: there are none. */
typedef dnnl_status_t (*xm_onednn_make_memory)(dnnl_memory_t *out,
                                               const_dnnl_memory_desc_t desc,
                                               dnnl_engine_t engine,
                                               const struct xm_onednn_handle *handle);

/* To be called before any other function of oneDNN: it writes errors to standard output, which
 * is the program's, unless ONEDNN_VERBOSE asks for it. They come back as status anyway. */
void xm_onednn_be_quiet(void);

/* What the engine offers for a problem, for dnnl_primitive_desc_destroy; NULL: nothing. */
dnnl_primitive_desc_t xm_onednn_describe(dnnl_engine_t engine,
                                         const struct xm_onednn_problem *p);
/* "brg_matmul:avx512_core", "ocl:gemm:any"; lives as long as the description. */
const char *xm_onednn_implementation(const_dnnl_primitive_desc_t pd);
/* Whether an implementation of that name is reference code: correct, and as slow as that. */
bool xm_onednn_is_reference(const char *implementation);
/* Bytes of the SCRATCHPAD argument. */
uint64_t xm_onednn_scratchpad_bytes(const_dnnl_primitive_desc_t pd);

/* Runs a primitive made of `p` in the stream's order; does not wait. */
dnnl_status_t xm_onednn_execute(dnnl_primitive_t primitive, dnnl_engine_t engine,
                                dnnl_stream_t stream, const struct xm_onednn_problem *p,
                                const struct xm_onednn_handles *handles,
                                xm_onednn_make_memory make);

#ifdef __cplusplus
}
#endif
#endif
