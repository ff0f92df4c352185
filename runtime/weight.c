/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes, views and single values of a weight. Values are read one element or one block at a time:
 * this is the reference, devices use kernels. */
#include "runtime/weight.h"

#include <string.h>

#include "runtime/util/memory.h"
#include "runtime/weight_decode.h"

enum { MOST_BLOCK_COLS = 256 };
#define FORMAT(id, text, columns, bytes, meets)                                          \
    _Static_assert((columns) <= MOST_BLOCK_COLS, "a block of " #text " is too long");
#include "runtime/weight_formats.def"

#define xm_decode_elements NULL
enum {
    FLOATS = XM_MEETS_FLOATS,
    SHORTS = XM_MEETS_SHORTS,
    PAIRS = XM_MEETS_STEPS,
    BYTES = XM_MEETS_BYTES
};
/* clang-format off */
const struct xm_weight_format_info xm_weight_formats[XM_WEIGHT_FORMATS] = {
#define FORMAT(id, text, columns, bytes, meets) {#text, columns, bytes, meets, xm_decode_##text},
#include "runtime/weight_formats.def"
};
/* clang-format on */

static uint64_t
stored_row(const struct xm_weight *w, uint64_t e, uint64_t n)
{
    return w->view.first_row + e * xm_weight_expert_rows(w) + n;
}

/* Bytes of `rows` rows of `cols` columns in a format of blocks. */
static uint64_t
block_bytes(const struct xm_weight *w, uint64_t rows, uint64_t cols)
{
    const struct xm_weight_format_info *f = xm_weight_info(w);
    return rows * (cols / f->block_cols) * f->block_bytes;
}

bool
xm_weight_is_whole(const struct xm_weight *w)
{
    return xm_weight_row_cols(w) == w->cols && xm_weight_expert_rows(w) == w->rows &&
           !w->view.first_row && !w->view.first_col;
}

uint64_t
xm_weight_bytes(const struct xm_weight *w)
{
    uint64_t rows = w->experts * w->rows, groups = rows * xm_weight_groups(w);
    if (xm_weight_is_whole(w))
        return w->data.n + w->scale.n + w->zero_point.n + w->codebook.n + w->factor.n;
    if (xm_weight_is_blocks(w))
        return block_bytes(w, rows, w->cols);
    uint64_t bits = rows * w->cols * xm_element_bits(w->element);
    if (xm_weight_is_quantised(w))
        bits += groups * xm_element_bits(w->scale_element);
    if (w->zero_point.p && !w->zero_point_is_scalar)
        bits += groups * xm_element_bits(w->zero_point_element);
    return (bits + 7) / 8;
}

uint32_t
xm_weight_meets(const struct xm_weight *w)
{
    const bool is_small =
        xm_element_is_int(w->element) && xm_element_bits(w->element) <= 4;
    if (xm_weight_is_codes(w))
        return XM_MEETS_FLOATS;
    return xm_weight_info(w)->meets | (is_small ? XM_MEETS_BYTES : 0);
}

bool
xm_weight_takes_scales(const struct xm_weight *w, enum xm_element e)
{
    return e == XM_F16 || e == XM_BF16 || e == XM_F32 ||
           (xm_weight_is_codes(w) &&
            (e == XM_F8E4M3 || e == XM_F8E5M2 || e == XM_F8E8M0));
}

const char *
xm_weight_format_text(const struct xm_weight *w)
{
    return xm_weight_is_blocks(w) ? xm_weight_info(w)->text
           : w->codebook.p        ? "codebook"
                                  : xm_element_text(w->element);
}

void
xm_weight_tally_add(struct xm_weight_tally *t, const struct xm_weight *w)
{
    const char *format = xm_weight_format_text(w);
    uint32_t i = 0;
    while (i < t->n && strcmp(t->format[i], format) != 0)
        i++;
    if (i == XM_MOST_WEIGHT_FORMATS)
        return;
    t->format[i] = format;
    t->bytes[i] += xm_weight_bytes(w);
    t->n = i == t->n ? i + 1 : t->n;
}

const char *
xm_weight_tally_most(const struct xm_weight_tally *t)
{
    const char *best = "";
    uint64_t most = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        best = t->bytes[i] > most ? t->format[i] : best;
        most = t->bytes[i] > most ? t->bytes[i] : most;
    }
    return best;
}

/* ---- checks ------------------------------------------------------------------------ */

/* The rows that the bytes must contain, up to the last row of the view. */
struct stored {
    uint64_t rows, row_cols;
    bool whole; /* the view is the whole weight: there must be exactly these rows */
};

/* Whether `b` holds n elements of type e. */
static bool
holds(const struct xm_bytes *b, enum xm_element e, uint64_t n, bool exactly)
{
    uint64_t bytes;
    return xm_element_bytes(e, n, &bytes) && (exactly ? b->n == bytes : b->n >= bytes) &&
           (b->p || bytes == 0);
}

static const char *
check_quantisation(const struct xm_weight *w, const struct stored *s)
{
    uint64_t n;
    if (w->cols % w->group != 0)
        return "the group does not divide the columns";
    if (w->view.first_col % w->group != 0 || s->row_cols % w->group != 0)
        return "the first column is not the first of a group";
    if (!xm_mul_size(s->rows, s->row_cols / w->group, &n))
        return "the number of scales overflows";
    if (!xm_element_is_float(w->scale_element) || !xm_element_readable(w->scale_element))
        return "the scales have an unsupported element type";
    if (!holds(&w->scale, w->scale_element, n, s->whole))
        return "the size of the scales does not match the dimensions";
    if (!w->zero_point.p)
        return NULL;
    if (!xm_element_is_int(w->element) || w->codebook.p)
        return "only integers have zero points";
    if (!xm_element_readable(w->zero_point_element))
        return "the zero points have an unsupported element type";
    if (!holds(&w->zero_point, w->zero_point_element, w->zero_point_is_scalar ? 1 : n,
               s->whole))
        return "the size of the zero points does not match the dimensions";
    return NULL;
}

/* Checks codebook and factors if they are present. */
static const char *
check_extras(const struct xm_weight *w)
{
    const uint64_t rows = xm_weight_expert_rows(w);
    if (w->codebook.p && (w->format != XM_WEIGHT_ELEMENTS || w->element != XM_U4))
        return "a codebook needs elements of u4";
    if (w->codebook.p && w->codebook.n != XM_CODEBOOK_NUMBERS * sizeof(float))
        return "a codebook must have 16 elements of f32";
    if (!w->factor.p || !w->experts || !rows)
        return NULL;
    if (w->codebook.p ||
        (w->format == XM_WEIGHT_ELEMENTS && !xm_element_is_float(w->element)))
        return "integers and codebooks cannot have a scale for each expert";
    if (stored_row(w, w->experts - 1, 0) / rows >= w->factor.n / sizeof(float))
        return "an expert has no scale";
    return NULL;
}

static const char *
check_elements(const struct xm_weight *w, const struct stored *s)
{
    uint64_t n;
    if (!xm_element_readable(w->element))
        return "the element type is not supported";
    if (!xm_mul_size(s->rows, s->row_cols, &n) ||
        !holds(&w->data, w->element, n, s->whole))
        return "the size of the data does not match the dimensions";
    return xm_weight_is_quantised(w) ? check_quantisation(w, s) : NULL;
}

static const char *
check_blocks(const struct xm_weight *w, const struct stored *s)
{
    const struct xm_weight_format_info *f = xm_weight_info(w);
    uint64_t n;
    if (w->group || w->scale.p || w->zero_point.p)
        return "a block format cannot have separate scales or zero points";
    if (w->cols % f->block_cols != 0 || s->row_cols % f->block_cols != 0 ||
        w->view.first_col % f->block_cols != 0)
        return "the number of columns is not a multiple of the block size";
    if (!xm_mul_size(s->rows, s->row_cols / f->block_cols, &n) ||
        !xm_mul_size(n, f->block_bytes, &n))
        return "the number of blocks overflows";
    if ((s->whole ? w->data.n != n : w->data.n < n) || (!w->data.p && n))
        return "the size of the data does not match the dimensions";
    return NULL;
}

/* Finds the stored rows up to the last one of the view. False: their number overflows. */
static bool
find_stored(const struct xm_weight *w, struct stored *s)
{
    uint64_t step = xm_weight_expert_rows(w), before = 0;
    s->row_cols = xm_weight_row_cols(w);
    s->whole = xm_weight_is_whole(w);
    if (w->experts && !xm_mul_size(w->experts - 1, step, &before))
        return false;
    if (w->rows > UINT64_MAX - before ||
        w->view.first_row > UINT64_MAX - before - w->rows)
        return false;
    s->rows = before + w->view.first_row + w->rows;
    return true;
}

const char *
xm_weight_check(const struct xm_weight *w)
{
    struct stored s;
    uint64_t n;
    if (w->format >= XM_WEIGHT_FORMATS)
        return "the format is unknown";
    if (w->rank < 1 || w->rank > 3)
        return "the rank is not 1, 2 or 3";
    if ((w->rank < 3 && w->experts != 1) || (w->rank < 2 && w->rows != 1))
        return "a dimension beyond the rank is not 1";
    if (!xm_mul_size(w->experts, w->rows, &n) || !xm_mul_size(n, w->cols, &n) ||
        !find_stored(w, &s))
        return "the number of elements overflows";
    if (s.row_cols < w->cols || w->view.first_col > s.row_cols - w->cols)
        return "the columns lie outside the stored weight";
    const char *wrong = check_extras(w);
    if (wrong)
        return wrong;
    return xm_weight_is_blocks(w) ? check_blocks(w, &s) : check_elements(w, &s);
}

bool
xm_weight_same_format(const struct xm_weight *a, const struct xm_weight *b)
{
    if (a->format != b->format || a->element != b->element || a->group != b->group ||
        !a->codebook.p != !b->codebook.p || !a->factor.p != !b->factor.p)
        return false;
    if (!xm_weight_is_quantised(a))
        return true;
    if (a->scale_element != b->scale_element || a->order != b->order)
        return false;
    if (!a->zero_point.p || !b->zero_point.p)
        return !a->zero_point.p && !b->zero_point.p;
    return a->zero_point_element == b->zero_point_element &&
           a->zero_point_is_scalar == b->zero_point_is_scalar;
}

static bool
same_bytes(const struct xm_bytes *a, const struct xm_bytes *b)
{
    return a->p == b->p && a->n == b->n;
}

bool
xm_weight_same_stored(const struct xm_weight *a, const struct xm_weight *b)
{
    return xm_weight_same_format(a, b) && same_bytes(&a->data, &b->data) &&
           same_bytes(&a->scale, &b->scale) &&
           same_bytes(&a->zero_point, &b->zero_point) &&
           same_bytes(&a->codebook, &b->codebook) && same_bytes(&a->factor, &b->factor);
}

bool
xm_weight_same(const struct xm_weight *a, const struct xm_weight *b)
{
    return xm_weight_same_stored(a, b) && a->experts == b->experts &&
           a->rows == b->rows && a->cols == b->cols &&
           xm_weight_row_cols(a) == xm_weight_row_cols(b) &&
           xm_weight_expert_rows(a) == xm_weight_expert_rows(b) &&
           a->view.first_row == b->view.first_row &&
           a->view.first_col == b->view.first_col;
}

/* ---- views ------------------------------------------------------------------------- */

static bool
is_range(uint64_t first, uint64_t n, uint64_t size)
{
    return n > 0 && n <= size && first <= size - n;
}

/* Writes the strides of the stored weight into the view, which 0 stands for while the view is the
 * whole: call it before the view's own sizes change. */
static void
keep_steps(struct xm_weight *w)
{
    w->view.row_cols = xm_weight_row_cols(w);
    w->view.expert_rows = xm_weight_expert_rows(w);
}

/* Narrows b to the bytes of experts [first, first + n), `bits` bits for each; false: that is no
 * whole number of bytes. */
static bool
narrow(struct xm_bytes *b, uint64_t bits, uint64_t first, uint64_t n)
{
    if (bits % 8 != 0)
        return false;
    *b = (struct xm_bytes){b->p ? b->p + first * (bits / 8) : NULL, n * (bits / 8)};
    return true;
}

/* Makes some experts of a whole weight a whole weight again, with only their bytes. */
static const char *
narrow_experts(struct xm_weight *w, uint64_t first, uint64_t n)
{
    struct xm_weight part = *w;
    const uint64_t groups = w->rows * xm_weight_groups(w);
    const uint64_t bits = xm_weight_is_blocks(w)
                              ? 8 * block_bytes(w, w->rows, w->cols)
                              : w->rows * w->cols * xm_element_bits(w->element);
    bool is_cut = narrow(&part.data, bits, first, n);
    if (xm_weight_is_quantised(w))
        is_cut &=
            narrow(&part.scale, groups * xm_element_bits(w->scale_element), first, n);
    if (w->zero_point.p && !w->zero_point_is_scalar)
        is_cut &= narrow(&part.zero_point,
                         groups * xm_element_bits(w->zero_point_element), first, n);
    if (w->factor.p)
        is_cut &= narrow(&part.factor, 8 * sizeof(float), first, n);
    if (!is_cut)
        return "the weight of one expert is not a whole number of bytes";
    *w = part;
    w->experts = n;
    return NULL;
}

const char *
xm_weight_slice_experts(struct xm_weight *w, uint64_t first, uint64_t n)
{
    if (!is_range(first, n, w->experts))
        return "the experts lie outside the weight";
    if (n == w->experts)
        return NULL;
    if (xm_weight_is_whole(w))
        return narrow_experts(w, first, n);
    keep_steps(w);
    w->view.first_row += first * w->view.expert_rows;
    w->experts = n;
    return NULL;
}

const char *
xm_weight_slice_rows(struct xm_weight *w, uint64_t first, uint64_t n)
{
    if (!is_range(first, n, w->rows))
        return "the rows lie outside the weight";
    keep_steps(w);
    w->view.first_row += first;
    w->rows = n;
    return NULL;
}

const char *
xm_weight_slice_cols(struct xm_weight *w, uint64_t first, uint64_t n)
{
    uint64_t unit = w->group ? w->group : xm_weight_info(w)->block_cols;
    if (!is_range(first, n, w->cols))
        return "the columns lie outside the weight";
    if (first % unit != 0 || n % unit != 0)
        return "columns can be sliced only between groups or blocks";
    keep_steps(w);
    w->view.first_col += first;
    w->cols = n;
    return NULL;
}

/* Treats two rows as one of twice as many columns, and takes one half of the columns. */
const char *
xm_weight_alternate_rows(struct xm_weight *w, uint64_t odd)
{
    keep_steps(w);
    if (w->rows % 2 != 0 || w->view.expert_rows % 2 != 0 || w->view.first_row % 2 != 0)
        return "the number of rows is odd";
    if (w->order != XM_SCALE_ROW_MAJOR)
        return "the scales of a row are not contiguous";
    w->view.first_col += odd * w->view.row_cols;
    w->view.row_cols *= 2;
    w->view.expert_rows /= 2;
    w->view.first_row /= 2;
    w->rows /= 2;
    return NULL;
}

/* ---- values ------------------------------------------------------------------------ */

static uint64_t
scale_index(const struct xm_weight *w, uint64_t e, uint64_t n, uint64_t g)
{
    uint64_t groups = xm_weight_row_cols(w) / w->group, row = stored_row(w, e, n);
    uint64_t rows = xm_weight_expert_rows(w);
    g += w->view.first_col / w->group;
    return w->order == XM_SCALE_GROUP_MAJOR
               ? (row / rows * groups + g) * rows + row % rows
               : row * groups + g;
}

float
xm_weight_scale_at(const struct xm_weight *w, uint64_t e, uint64_t n, uint64_t g)
{
    if (!xm_weight_is_quantised(w))
        return 1.0f;
    return xm_load_float(w->scale_element, w->scale.p, scale_index(w, e, n, g));
}

float
xm_weight_zero_point_at(const struct xm_weight *w, uint64_t e, uint64_t n, uint64_t g)
{
    if (!xm_weight_is_quantised(w) || !w->zero_point.p)
        return 0.0f;
    uint64_t i = w->zero_point_is_scalar ? 0 : scale_index(w, e, n, g);
    return xm_load_float(w->zero_point_element, w->zero_point.p, i);
}

float
xm_weight_factor_at(const struct xm_weight *w, uint64_t e)
{
    return w->factor.p ? xm_load_float(XM_F32, w->factor.p,
                                       stored_row(w, e, 0) / xm_weight_expert_rows(w))
                       : 1.0f;
}

static float
element_at(const struct xm_weight *w, uint64_t i)
{
    return w->codebook.p ? xm_load_float(XM_F32, w->codebook.p,
                                         (uint64_t)xm_load_int(XM_U4, w->data.p, i))
                         : xm_load_float(w->element, w->data.p, i);
}

static void
block_row(const struct xm_weight *w, uint64_t row, float *out)
{
    const struct xm_weight_format_info *f = xm_weight_info(w);
    const uint8_t *block = w->data.p + block_bytes(w, row, xm_weight_row_cols(w)) +
                           block_bytes(w, 1, w->view.first_col);
    for (uint64_t k = 0; k < w->cols; k += f->block_cols, block += f->block_bytes)
        f->decode(block, out + k);
}

static void
element_row(const struct xm_weight *w, uint64_t e, uint64_t n, float *out)
{
    uint64_t first = stored_row(w, e, n) * xm_weight_row_cols(w) + w->view.first_col;
    for (uint64_t k = 0; k < w->cols; k++)
        out[k] = element_at(w, first + k);
    if (!xm_weight_is_quantised(w))
        return;
    for (uint64_t g = 0; g < xm_weight_groups(w); g++) {
        float scale = xm_weight_scale_at(w, e, n, g);
        float zero_point = xm_weight_zero_point_at(w, e, n, g);
        float *group = out + g * w->group;
        for (uint64_t k = 0; k < w->group; k++)
            group[k] = (group[k] - zero_point) * scale;
    }
}

void
xm_weight_row(const struct xm_weight *w, uint64_t e, uint64_t n, float *out)
{
    if (xm_weight_is_blocks(w))
        block_row(w, stored_row(w, e, n), out);
    else
        element_row(w, e, n, out);
    for (uint64_t k = 0; w->factor.p && k < w->cols; k++)
        out[k] *= xm_weight_factor_at(w, e);
}
