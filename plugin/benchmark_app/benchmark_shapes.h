/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses benchmark_app's flags that have a value for each input or output, by name:
 *
 *     -shape      in1[1,3],in2[?,1..8]      one shape each; ? or -1: any size, a..b: a range
 *     -data_shape in1[1,16][4,16],in2[1][4] shapes of tensors, one for each group
 *     -layout     in1[NCHW],in2[N,...]
 *     -iop        in1:f16, out:f32          the tensors' element types
 *
 * A value without a name is for all inputs or outputs.
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

enum { XM_BENCHMARK_RANK = 8 }; /* most dimensions of a shape */

struct xm_benchmark_dims {
    uint32_t rank;
    int64_t min[XM_BENCHMARK_RANK], max[XM_BENCHMARK_RANK]; /* max -1: no bound */
};

struct xm_benchmark_shape {
    struct xm_slice name; /* points into the flag's value; n = 0: for all */
    struct xm_benchmark_dims dims;
    struct xm_slice text; /* between the brackets */
};

/* The brackets of a flag's value, in its order: brackets of one name are adjacent.
 * Zero-initialise. */
struct xm_benchmark_shapes {
    struct xm_benchmark_shape *list; /* owned */
    size_t n, capacity;
};

/* The content of brackets. */
enum xm_benchmark_brackets {
    XM_BRACKETS_SHAPE,  /* dimensions or ranges; one bracket for each name */
    XM_BRACKETS_GROUPS, /* fixed dimensions; any number of brackets        */
    XM_BRACKETS_LAYOUT  /* letters; `dims` is not set                      */
};

/* Parses the value `text` of a flag, which must outlive *out; NULL: no value. XM_INVALID: the
 * sentence names the flag `option`. */
enum xm_status xm_benchmark_shapes_read(const char *option, const char *text,
                                        enum xm_benchmark_brackets kind,
                                        struct xm_benchmark_shapes *out,
                                        struct xm_error *err);
void xm_benchmark_shapes_free(struct xm_benchmark_shapes *s);
/* Bracket number `i` of a name, else of the value without a name; NULL: there is none. */
const struct xm_benchmark_shape *
xm_benchmark_shapes_find(const struct xm_benchmark_shapes *s, const char *name, size_t i);
size_t xm_benchmark_shapes_count(const struct xm_benchmark_shapes *s, const char *name);

/* The index of the dimension called N, in a layout as OpenVINO writes it ("[N,...,C]"; NULL: none)
 * of a shape with `rank` dimensions; -1: there is none. */
int xm_benchmark_layout_batch(const char *layout, uint32_t rank);
/* Whether the layout can have `rank` dimensions: it names as many, or with "..." at most as
 * many. */
bool xm_benchmark_layout_fits(const char *layout, uint32_t rank);

/* Appends "[?,1..8]". */
void xm_benchmark_dims_print(const struct xm_benchmark_dims *d, struct xm_strbuf *out);
/* Appends dimension `i`: "8", "1..8" or "?". */
void xm_benchmark_dim_print(const struct xm_benchmark_dims *d, uint32_t i,
                            struct xm_strbuf *out);
bool xm_benchmark_dims_equal(const struct xm_benchmark_dims *a,
                             const struct xm_benchmark_dims *b);
bool xm_benchmark_dims_are_fixed(const struct xm_benchmark_dims *d);
/* Whether a tensor with the fixed dimensions `fixed` has the shape `d`. */
bool xm_benchmark_dims_take(const struct xm_benchmark_dims *d,
                            const struct xm_benchmark_dims *fixed);

/* Removes the first item of "NAME:value, NAME:value" from *rest; name->n = 0: the item has no name.
 * Returns false: *rest is empty. */
bool xm_benchmark_next_item(struct xm_slice *rest, struct xm_slice *name,
                            struct xm_slice *value);
/* Returns the value of a name in "NAME:value, NAME:value", or of the item without a name; n = 0:
 * none. */
struct xm_slice xm_benchmark_value_of(const char *text, const char *name);

#ifdef __cplusplus
}
#endif
#endif
