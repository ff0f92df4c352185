/* SPDX-License-Identifier: Apache-2.0
 *
 * What benchmark_app's flags say of inputs and outputs by name:
 *
 *     -shape      in1[1,3],in2[?,1..8]      a shape each; ? or -1: any size, a..b: a range
 *     -data_shape in1[1,16][4,16],in2[1][4] shapes of tensors, one for each group
 *     -layout     in1[NCHW],in2[N,...]
 *     -iop        in1:f16, out:f32          the tensors' element types
 *
 * What has no name is for all.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_SHAPES_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/slice.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_BENCHMARK_RANK = 8 }; /* at most */

struct xm_benchmark_dims {
    uint32_t rank;
    int64_t min[XM_BENCHMARK_RANK], max[XM_BENCHMARK_RANK]; /* max -1: no bound */
};

struct xm_benchmark_shape {
    struct xm_slice name; /* of the flag's text; n 0: of all */
    struct xm_benchmark_dims dims;
    struct xm_slice text; /* between the brackets */
};

/* Brackets in the order of the text: those of one name stand side by side. Zero-initialise. */
struct xm_benchmark_shapes {
    struct xm_benchmark_shape *list; /* owned */
    size_t n, capacity;
};

/* What stands between brackets. */
enum xm_benchmark_brackets {
    XM_BRACKETS_SHAPE,  /* dimensions; one bracket a name   */
    XM_BRACKETS_GROUPS, /* numbers; any number of brackets  */
    XM_BRACKETS_LAYOUT  /* letters, dims is not set         */
};

/* XM_INVALID: the sentence names the option. text NULL: nothing. */
enum xm_status xm_benchmark_shapes_read(const char *option, const char *text,
                                        enum xm_benchmark_brackets kind,
                                        struct xm_benchmark_shapes *out,
                                        struct xm_error *err);
void xm_benchmark_shapes_free(struct xm_benchmark_shapes *s);
/* Bracket `i` of a name, or of all; NULL: there are not so many. */
const struct xm_benchmark_shape *
xm_benchmark_shapes_find(const struct xm_benchmark_shapes *s, const char *name, size_t i);
size_t xm_benchmark_shapes_count(const struct xm_benchmark_shapes *s, const char *name);

/* Of a layout as OpenVINO writes it, "[N,...,C]", and a number of dimensions. Which of them is
 * called N; -1: none, or there is no layout. */
int xm_benchmark_layout_batch(const char *layout, uint32_t rank);
/* Whether it has as many names, or no more where it says `...`. */
bool xm_benchmark_layout_fits(const char *layout, uint32_t rank);

/* "[?,1..8]" */
void xm_benchmark_dims_print(const struct xm_benchmark_dims *d, struct xm_strbuf *out);
/* Dimension `i`: "8", "1..8", "?". */
void xm_benchmark_dim_print(const struct xm_benchmark_dims *d, uint32_t i,
                            struct xm_strbuf *out);
bool xm_benchmark_dims_equal(const struct xm_benchmark_dims *a,
                             const struct xm_benchmark_dims *b);
bool xm_benchmark_dims_are_fixed(const struct xm_benchmark_dims *d);
/* Whether a tensor of fixed dimensions may stand where `d` is wanted. */
bool xm_benchmark_dims_take(const struct xm_benchmark_dims *d,
                            const struct xm_benchmark_dims *fixed);

/* Takes the first item off "NAME:value, NAME:value"; name->n 0: it has none. False: *rest is
 * empty. */
bool xm_benchmark_next_item(struct xm_slice *rest, struct xm_slice *name,
                            struct xm_slice *value);
/* Item of "NAME:value, NAME:value" for a name, or the item without one; n 0: none. */
struct xm_slice xm_benchmark_value_of(const char *text, const char *name);

#ifdef __cplusplus
}
#endif
#endif
