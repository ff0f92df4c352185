/* SPDX-License-Identifier: Apache-2.0
 *
 * A weight: bytes, a format (how the bytes become numbers) and a view (which part of the stored
 * matrices is meant).
 *
 *     w[e][n][k]     E experts (1 for an ordinary matrix), N rows (outputs), K columns (inputs),
 *                    K innermost
 *
 * A format is a row of weight_formats.def. The format ELEMENTS has parameters: the element type
 * and, for types of at most 8 bits, the group size G and the types of scales and zero points. G
 * columns of a row share a scale and a zero point (zp):
 *
 *     w[e][n][k] = (q[e][n][k] - zp[e][n][k / G]) * scale[e][n][k / G]
 *
 * q are integers, small floats (nf4 f4e2m1 f8e4m3 f8e5m2), or values of a codebook that 4-bit
 * elements index. Only integers have zero points. 4-bit elements are packed low nibble first. In
 * the other formats a row consists of blocks that contain their scales. Weights of blocks or floats
 * may also have one f32 factor for each stored expert, by which all its elements are multiplied.
 *
 * A view may be a part of the stored weight: rows and columns of a larger matrix, some experts,
 * some rows of each expert. It points to the bytes of the whole stored weight and says where the
 * view begins; no byte is copied. These structs own no memory: the bytes are in a mapped file, at
 * any alignment.
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

enum xm_weight_format {
#define FORMAT(id, text, columns, bytes, meets) XM_WEIGHT_##id,
#include "runtime/weight_formats.def"
    XM_WEIGHT_FORMATS
};

/* The forms of activations by which kernels can multiply weights of a format, or-ed. */
enum xm_weight_meets {
    XM_MEETS_FLOATS = 1u << 0,
    /* 16-bit integers, a scale for each block of columns */
    XM_MEETS_SHORTS = 1u << 1,
    XM_MEETS_STEPS = 1u << 2, /* tiles of f16 steps, for matrix engines      */
    /* 8-bit integers, even if the processor adds two products in 16 bits (AVX2 without VNNI): the
     * integers of the format have at most 6 bits (BITS_… in its kernel header), so that sums
     * fit. */
    XM_MEETS_BYTES = 1u << 3
};

struct xm_weight_format_info {
    const char *text;
    uint32_t block_cols, block_bytes;
    uint32_t meets; /* enum xm_weight_meets */
    /* decodes a block at any alignment into block_cols floats; NULL for ELEMENTS */
    void (*decode)(const uint8_t *block, float *out);
};
extern const struct xm_weight_format_info xm_weight_formats[XM_WEIGHT_FORMATS];

/* Order of the scales and zero points. */
enum xm_scale_order {
    XM_SCALE_ROW_MAJOR,  /* [E][N][K/G], as files have them */
    XM_SCALE_GROUP_MAJOR /* [E][K/G][N]                     */
};

/* Where a view begins in the stored weight, and the strides of the stored weight. */
struct xm_weight_view {
    uint64_t row_cols;    /* columns of a stored row; 0: as many as the view has    */
    uint64_t expert_rows; /* rows of a stored expert; 0: as many as the view has    */
    uint64_t first_row;   /* first stored row of the view, of all experts' rows     */
    uint64_t first_col;
};

struct xm_weight {
    enum xm_weight_format format;
    /* number of dimensions: 1 [K], 2 [N,K], 3 [E,N,K]; sizes of absent ones are 1 */
    uint32_t rank;
    uint64_t experts, rows, cols; /* E, N, K of the view */
    struct xm_weight_view view;
    struct xm_bytes data; /* as scale and zero_point, of the whole stored weight     */
    /* Members for the format ELEMENTS. */
    enum xm_element element; /* type of an element: u4 i4 u8 i8 f16 bf16 f32 …  */
    uint64_t group; /* columns that share a scale; 0: not quantised; K: one scale a row */
    enum xm_scale_order order;
    enum xm_element scale_element; /* f16 bf16 f32 f8e4m3 f8e5m2 f8e8m0 */
    struct xm_bytes scale;
    enum xm_element zero_point_element; /* u4 u8 i8 f16 f32 … */
    struct xm_bytes zero_point;         /* p == NULL: none (symmetric) */
    bool zero_point_is_scalar;          /* one zero point for the whole weight */
    struct xm_bytes codebook; /* 16 f32 that u4 elements index; p == NULL: none */
    /* For all formats but integers and codebooks: one f32 factor for each stored expert; p == NULL:
     * the factors are 1. */
    struct xm_bytes factor;
};

enum { XM_CODEBOOK_NUMBERS = 16 };

static inline const struct xm_weight_format_info *
xm_weight_info(const struct xm_weight *w)
{
    return &xm_weight_formats[w->format];
}

/* Whether scales are stored apart from the elements. */
static inline bool
xm_weight_is_quantised(const struct xm_weight *w)
{
    return w->group != 0;
}

/* Whether the elements are stored in blocks that contain their scales. */
static inline bool
xm_weight_is_blocks(const struct xm_weight *w)
{
    return w->format != XM_WEIGHT_ELEMENTS;
}

/* Whether kernels decode the elements, 16 columns at a time as they decode blocks: small floats,
 * indices into a codebook, floats with a factor for each expert. */
static inline bool
xm_weight_is_codes(const struct xm_weight *w)
{
    return !xm_weight_is_blocks(w) &&
           (w->codebook.p || w->factor.p || xm_element_is_small_float(w->element));
}

/* Whether kernels read scales of type e in place; scales of other types are first converted to
 * f32. */
bool xm_weight_takes_scales(const struct xm_weight *w, enum xm_element e);

/* Number of groups in a row: K / G; 1 when not quantised. */
static inline uint64_t
xm_weight_groups(const struct xm_weight *w)
{
    return w->group ? w->cols / w->group : 1;
}

/* Strides of the stored weight. */
static inline uint64_t
xm_weight_row_cols(const struct xm_weight *w)
{
    return w->view.row_cols ? w->view.row_cols : w->cols;
}

static inline uint64_t
xm_weight_expert_rows(const struct xm_weight *w)
{
    return w->view.expert_rows ? w->view.expert_rows : w->rows;
}

/* Whether the view is the whole stored weight. */
bool xm_weight_is_whole(const struct xm_weight *w);

/* Bytes of the view: data, scales, zero points; of a whole weight also codebook and factors. */
uint64_t xm_weight_bytes(const struct xm_weight *w);

/* The forms of activations by which kernels can multiply this weight (enum xm_weight_meets). */
uint32_t xm_weight_meets(const struct xm_weight *w);

/* Name of the format for messages: the element type, "codebook", or the block format. */
const char *xm_weight_format_text(const struct xm_weight *w);

/* Sums of the bytes of several weights by format. Zero-initialise. */
enum { XM_MOST_WEIGHT_FORMATS = 48 };
struct xm_weight_tally {
    uint32_t n;
    const char *format[XM_MOST_WEIGHT_FORMATS]; /* static */
    uint64_t bytes[XM_MOST_WEIGHT_FORMATS];
};
void xm_weight_tally_add(struct xm_weight_tally *t, const struct xm_weight *w);
/* The format with the most bytes, static; "" without weights. */
const char *xm_weight_tally_most(const struct xm_weight_tally *t);

/* Checks that bytes, view and parameters agree with the dimensions. Returns NULL, or a static
 * sentence that says what is wrong. */
const char *xm_weight_check(const struct xm_weight *w);

/* Whether one kernel can read both weights: equal format, element type, group, types of scales and
 * zero points; a codebook in both or none, factors in both or none. */
bool xm_weight_same_format(const struct xm_weight *a, const struct xm_weight *b);

/* Whether both are the same view of the same bytes in the same format. */
bool xm_weight_same(const struct xm_weight *a, const struct xm_weight *b);
/* Whether both are views, equal or not, of the same bytes in the same format. */
bool xm_weight_same_stored(const struct xm_weight *a, const struct xm_weight *b);

/* These make *w a view of a part of *w. They return NULL, or a static sentence that says why it
 * cannot be: then *w is the same view as before. Columns can be cut only between groups and blocks.
 * Some experts of a whole weight become a whole weight again, with the bytes of these experts only.
 * A range of rows is taken of every expert. */
const char *xm_weight_slice_experts(struct xm_weight *w, uint64_t first, uint64_t n);
const char *xm_weight_slice_rows(struct xm_weight *w, uint64_t first, uint64_t n);
const char *xm_weight_slice_cols(struct xm_weight *w, uint64_t first, uint64_t n);
/* Makes *w a view of every second row of each expert: of rows 0, 2, … (odd = 0) or 1, 3, … (odd =
 * 1). Returns NULL, or a static sentence that says why it cannot be: then *w is the same view as
 * before. */
const char *xm_weight_alternate_rows(struct xm_weight *w, uint64_t odd);

/* Scale and zero point of group g in row n of expert e, for the format ELEMENTS (1 and 0 if
 * absent). */
float xm_weight_scale_at(const struct xm_weight *w, uint64_t e, uint64_t n, uint64_t g);
float xm_weight_zero_point_at(const struct xm_weight *w, uint64_t e, uint64_t n,
                              uint64_t g);

/* The factor of expert e; 1 where there are no factors. */
float xm_weight_factor_at(const struct xm_weight *w, uint64_t e);

/* Decodes row n of expert e to K floats. */
void xm_weight_row(const struct xm_weight *w, uint64_t e, uint64_t n, float *out);

#ifdef __cplusplus
}
#endif
#endif
