/* SPDX-License-Identifier: Apache-2.0
 *
 * rope: half-split rotary embedding of x[B,T,heads,D] by tables cos, sin [B|1,T,R], f32.
 * Formula: xm_ref_rope.
 *
 * rope_tables: computes rope's cos and sin tables from positions and frequencies. Formula:
 * xm_ref_rope_tables.
 */
#ifndef XM_PRIMITIVES_ROPE_ROPE_H
#define XM_PRIMITIVES_ROPE_ROPE_H

#include "primitives/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_ROPE_X, XM_ROPE_COS, XM_ROPE_SIN, XM_ROPE_Y, XM_ROPE_N_OPERANDS };
struct xm_rope_desc {
    enum xm_element element; /* of x and y: f16 or f32; the tables are f32 */
};
/* Returns NULL if supported, else the reason, a static string. Pure. */
const char *xm_rope_supports(const struct xm_rope_desc *desc);
enum xm_status xm_rope_create(struct xm_engine *engine, const struct xm_rope_desc *desc,
                              struct xm_primitive **out, struct xm_error *err);

enum {
    XM_ROPE_TABLES_POSITIONS, /* [B,T] */
    XM_ROPE_TABLES_COS,       /* f32 [B,T,R]; [B,T,2R] if desc.twice */
    XM_ROPE_TABLES_SIN,
    XM_ROPE_TABLES_N_OPERANDS
};
struct xm_rope_tables_desc {
    struct xm_buffer *frequencies; /* f32 [R]; referenced */
    uint32_t r;
    enum xm_element positions; /* i64 or i32 */
    float scale;
    bool twice;
};
const char *xm_rope_tables_supports(const struct xm_rope_tables_desc *desc);
enum xm_status xm_rope_tables_create(struct xm_engine *engine,
                                     const struct xm_rope_tables_desc *desc,
                                     struct xm_primitive **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
