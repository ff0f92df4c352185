/* SPDX-License-Identifier: Apache-2.0
 *
 * A weight as one value: a format (how bytes become numbers) and a view (which of them).
 *
 *     w[e][n][k]     E experts (1 for an ordinary matrix), N rows (outputs), K columns (inputs),
 *                    K innermost
 *
 * A format is a row of weight_formats.def. ELEMENTS has parameters: the element type, and where
 * that has at most 8 bits the columns that share a scale, and the types of scales and zero points:
 *
 *     w[e][n][k] = (q[e][n][k] - zp[e][n][k / G]) * scale[e][n][k / G]
 *
 * q are integers, small floats (nf4 f4e2m1 f8e4m3 f8e5m2), or what a codebook has at 4-bit indices.
 * Only integers have zero points. 4-bit elements are packed low nibble first. In the other formats
 * a row is blocks, each with its scales inside. Weights of blocks or floats may have one f32 factor
 * for each stored expert, which multiplies all its elements.
 *
 * A view may be a part of the stored weight: rows and columns of a larger matrix, some experts,
 * some rows of each expert. It has the bytes of the whole and the place where the view begins; no
 * byte is copied. Nothing here owns memory: the bytes are in a mapped file, at any alignment.
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

/* The forms of activations that kernels can multiply by a weight of a format, or-ed. */
enum xm_weight_meets {
    XM_MEETS_FLOATS = 1u << 0,
    XM_MEETS_SHORTS = 1u << 1, /* 16-bit integers with a factor a block */
    XM_MEETS_STEPS = 1u << 2,  /* tiles of f16 steps, for matrix engines      */
    /* 8-bit integers also where sums of two products have 16 bits (AVX2 without VNNI): the format's
     * integers have at most 6 bits, as the BITS_ of its kernel header says */
    XM_MEETS_BYTES = 1u << 3
};

struct xm_weight_format_info {
    const char *text;
    uint32_t block_cols, block_bytes;
    uint32_t meets; /* enum xm_weight_meets */
    /* decodes a block, at any alignment, into block_cols floats; NULL: ELEMENTS */
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
    uint64_t row_cols;    /* columns from one stored row to the next; 0: the view's */
    uint64_t expert_rows; /* rows from one stored expert to the next; 0: the view's */
    uint64_t first_row;   /* of the stored rows, counted through the experts        */
    uint64_t first_col;
};

struct xm_weight {
    enum xm_weight_format format;
    uint32_t rank; /* logical rank: 1 [K], 2 [N,K], 3 [E,N,K]; sizes 1 where absent */
    uint64_t experts, rows, cols; /* E, N, K of the view */
    struct xm_weight_view view;
    struct xm_bytes data; /* of the whole stored weight, as are scale and zero_point */
    /* ELEMENTS */
    enum xm_element element; /* of the stored bytes: u4 i4 u8 i8 f16 bf16 f32 … */
    uint64_t group; /* K elements that share a scale; 0: not quantised; K: per row */
    enum xm_scale_order order;
    enum xm_element scale_element; /* f16 bf16 f32 f8e4m3 f8e5m2 f8e8m0 */
    struct xm_bytes scale;
    enum xm_element zero_point_element; /* u4 u8 i8 f16 f32 … */
    struct xm_bytes zero_point;         /* p == NULL: none (symmetric) */
    bool zero_point_is_scalar;          /* one zero point for the whole weight */
    struct xm_bytes codebook; /* 16 f32 that u4 elements index; p == NULL: none */
    /* Any format but integers and codebooks: one f32 factor for each stored expert;
     * p == NULL: 1. */
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

/* Whether the elements need decoding on the device: small floats, indices into a codebook, floats
 * with a factor. Kernels decode 16 columns at a time, as they decode blocks. */
static inline bool
xm_weight_is_codes(const struct xm_weight *w)
{
    return !xm_weight_is_blocks(w) &&
           (w->codebook.p || w->factor.p || xm_element_is_small_float(w->element));
}

/* Whether kernels read scales of type e in place; scales of other types are copied to f32. */
bool xm_weight_takes_scales(const struct xm_weight *w, enum xm_element e);

/* Groups of a row: K / G, 1 when not quantised. */
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

/* Bytes of data, scales and zero points of the view. */
uint64_t xm_weight_bytes(const struct xm_weight *w);

/* The forms of activations that its kernels can multiply with (enum xm_weight_meets). */
uint32_t xm_weight_meets(const struct xm_weight *w);

/* Name of the format for people: the element type, "codebook", or the block format. */
const char *xm_weight_format_text(const struct xm_weight *w);

/* Bytes of several weights by the names of their formats. Zero-initialise. */
enum { XM_MOST_WEIGHT_FORMATS = 48 };
struct xm_weight_tally {
    uint32_t n;
    const char *format[XM_MOST_WEIGHT_FORMATS]; /* static */
    uint64_t bytes[XM_MOST_WEIGHT_FORMATS];
};
void xm_weight_tally_add(struct xm_weight_tally *t, const struct xm_weight *w);
/* The format of most bytes; static; "": there is no weight. */
const char *xm_weight_tally_most(const struct xm_weight_tally *t);

/* Whether the sizes of the views agree with the dimensions; NULL, or a static sentence. */
const char *xm_weight_check(const struct xm_weight *w);

/* Whether one kernel can read both weights: same format, group, zero point and scale types, both or
 * neither with a codebook and with factors. */
bool xm_weight_same_format(const struct xm_weight *a, const struct xm_weight *b);

/* Whether both are the same view of the same bytes in the same format. */
bool xm_weight_same(const struct xm_weight *a, const struct xm_weight *b);
/* Whether both are views, equal or not, of the same bytes in the same format. */
bool xm_weight_same_stored(const struct xm_weight *a, const struct xm_weight *b);

/* Views of a view: NULL, or a static sentence. Columns are cut between groups and blocks. Some
 * experts of a whole weight are a whole weight again, whose bytes are those of its experts alone. A
 * range of rows is of every expert. */
const char *xm_weight_slice_experts(struct xm_weight *w, uint64_t first, uint64_t n);
const char *xm_weight_slice_rows(struct xm_weight *w, uint64_t first, uint64_t n);
const char *xm_weight_slice_cols(struct xm_weight *w, uint64_t first, uint64_t n);
/* Every second row of each expert: `odd` 0 from the first on, 1 from the second. */
const char *xm_weight_alternate_rows(struct xm_weight *w, uint64_t odd);

/* Scale and zero point of group g in row n of expert e of ELEMENTS (1 and 0 where absent). */
float xm_weight_scale_at(const struct xm_weight *w, uint64_t e, uint64_t n, uint64_t g);
float xm_weight_zero_point_at(const struct xm_weight *w, uint64_t e, uint64_t n,
                              uint64_t g);

/* The factor of expert e; 1 where there are no factors. */
float xm_weight_factor_at(const struct xm_weight *w, uint64_t e);

/* Row n of expert e in f32: K floats. */
void xm_weight_row(const struct xm_weight *w, uint64_t e, uint64_t n, float *out);

#ifdef __cplusplus
}
#endif
#endif
