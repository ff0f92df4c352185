/* SPDX-License-Identifier: Apache-2.0
 *
 * A weight as one value: bytes, element type, and for quantised ones group, scale, zero point.
 *
 *     w[e][n][k] = (q[e][n][k] - zp[e][n][k / G]) * scale[e][n][k / G]
 *
 * E experts (1 for an ordinary matrix), N rows (outputs), K columns (inputs), K innermost; 4-bit
 * elements are packed low nibble first. Nothing here owns memory: the bytes are views of a
 * mapped file, at any alignment.
 */
#ifndef XM_RUNTIME_WEIGHT_H
#define XM_RUNTIME_WEIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/element.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed bytes. */
struct xm_bytes {
    const uint8_t *p; /* NULL: absent */
    uint64_t n;
};

/* Order of the scales and zero points. */
enum xm_scale_order {
    XM_SCALE_ROW_MAJOR,  /* [E][N][K/G], as files have them */
    XM_SCALE_GROUP_MAJOR /* [E][K/G][N]                     */
};

struct xm_weight {
    enum xm_element element; /* of the stored bytes: u4 i4 u8 i8 f16 bf16 f32 … */
    uint32_t rank; /* logical rank: 1 [K], 2 [N,K], 3 [E,N,K]; sizes 1 where absent */
    uint64_t experts, rows, cols; /* E, N, K                                            */
    struct xm_bytes data;
    uint64_t group; /* K elements that share a scale; 0: not quantised; K: per row */
    enum xm_scale_order order;
    enum xm_element scale_element; /* f16 or f32 */
    struct xm_bytes scale;
    enum xm_element zero_point_element; /* u4 u8 i8 f16 f32 … */
    struct xm_bytes zero_point;         /* p == NULL: none (symmetric) */
    bool zero_point_is_scalar;          /* one zero point for the whole weight */
};

static inline bool
xm_weight_is_quantised(const struct xm_weight *w)
{
    return w->group != 0;
}

/* Groups of a row: K / G, 1 when not quantised. */
static inline uint64_t
xm_weight_groups(const struct xm_weight *w)
{
    return w->group ? w->cols / w->group : 1;
}

/* Bytes of data, scales and zero points in all. */
uint64_t xm_weight_bytes(const struct xm_weight *w);

/* Whether the sizes of the views agree with the dimensions; NULL, or a static sentence. */
const char *xm_weight_check(const struct xm_weight *w);

/* Same element, group, zero point and scale types: two weights one kernel can read. */
bool xm_weight_same_format(const struct xm_weight *a, const struct xm_weight *b);

/* Scale and zero point of group g in row n of expert e (1 and 0 where absent). */
float xm_weight_scale_at(const struct xm_weight *w, uint64_t e, uint64_t n, uint64_t g);
float xm_weight_zero_point_at(const struct xm_weight *w, uint64_t e, uint64_t n,
                              uint64_t g);

/* Row n of expert e in f32: K floats. */
void xm_weight_row(const struct xm_weight *w, uint64_t e, uint64_t n, float *out);

#ifdef __cplusplus
}
#endif
#endif
