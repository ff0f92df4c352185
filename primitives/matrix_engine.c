/* SPDX-License-Identifier: Apache-2.0
 *
 * Which weights the kernels for matrix engines can read. The reasons are in kernels/cl/include: for
 * many tokens in element_steps.h and block_steps.h; for few in lane_rows.h and lane_blocks.h.
 */
#include "primitives/matrix_engine.h"

#include "primitives/device_weight.h"

/* columns of a step of integers, and of a unit of elements */
enum { INTEGER_K = 32 };

/* Returns the stored bytes in 16-bit half words. Kernels count half words or words in 32 bits. */
static uint64_t
stored_places(const struct xm_weight *w)
{
    return w->data.n / sizeof(uint16_t);
}

/* A format that kernels can read, and the number of columns whose blocks are whole 32-bit words (or
 * half words, if the kernel reads those). */
struct blocks_row {
    enum xm_weight_format format;
    uint32_t cols;
};

/* Formats whose stored integers are multiplied as they are (kernels/cl/include/lane_blocks.h). */
static const struct blocks_row integer_blocks[] = {
    {XM_WEIGHT_Q4_0, 64},  {XM_WEIGHT_Q4_1, 64},   {XM_WEIGHT_Q5_0, 64},
    {XM_WEIGHT_Q5_1, 64},  {XM_WEIGHT_Q8_0, 64},   {XM_WEIGHT_MXFP4, 64},
    {XM_WEIGHT_NVFP4, 64}, {XM_WEIGHT_IQ4_NL, 64}, {XM_WEIGHT_IQ4_XS, 256},
    {XM_WEIGHT_Q4_K, 256}, {XM_WEIGHT_Q5_K, 256},  {XM_WEIGHT_Q6_K, 256},
    {XM_WEIGHT_Q2_K, 256}, {XM_WEIGHT_Q3_K, 256},
};

/* Refuses a view whose rows do not begin and end at multiples of `cols` columns. */
static const char *
cols_refuse(const struct xm_weight *w, uint32_t cols)
{
    return w->cols % cols || xm_weight_row_cols(w) % cols || w->view.first_col % cols
               ? "a row does not begin and end at a word boundary between blocks"
               : NULL;
}

static const char *
integer_blocks_refuse(const struct xm_weight *w)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(integer_blocks); i++) {
        if (integer_blocks[i].format == w->format)
            return cols_refuse(w, integer_blocks[i].cols);
    }
    return "no kernel multiplies the integers of this block format as they are stored";
}

/* Formats whose blocks are an odd number of half words, but which are read as 32-bit words; all
 * other formats are read from the block's first half word on (kernels/cl/include/block_steps.h). */
static const enum xm_weight_format paired_blocks[] = {XM_WEIGHT_Q4_0, XM_WEIGHT_Q5_0,
                                                      XM_WEIGHT_Q8_0, XM_WEIGHT_IQ4_NL};

/* Returns the columns of the fewest blocks (a power of two) that are whole words, or half words. */
static uint32_t
whole_cols(const struct xm_weight *w)
{
    const struct xm_weight_format_info *f = &xm_weight_formats[w->format];
    uint32_t place = 2, n = 1;
    for (size_t i = 0; i < XM_ARRAY_LEN(paired_blocks); i++) {
        if (paired_blocks[i] == w->format)
            place = 4;
    }
    while (n * f->block_bytes % place != 0)
        n *= 2;
    return n * f->block_cols;
}

static const char *
codes_refuse(const struct xm_weight *w)
{
    if (w->element != XM_F4E2M1 || w->codebook.p)
        return "of small floats and codebooks, matrix engines support only f4e2m1";
    if (w->group == 0 || w->group % INTEGER_K != 0 || w->cols % INTEGER_K != 0)
        return "the columns or the group are not a multiple of 32";
    return xm_weight_not_in_words(w, 1);
}

const char *
xm_matrix_rows_refuse(const struct xm_weight *w, enum xm_element src)
{
    const uint32_t bits = xm_element_bits(w->element);
    if (src != XM_F16)
        return "f32 activations would lose precision as integers";
    if (stored_places(w) > UINT32_MAX)
        return "the weight has 8 GiB or more";
    if (xm_weight_is_codes(w))
        return codes_refuse(w);
    if (xm_weight_is_blocks(w))
        return integer_blocks_refuse(w);
    if (!xm_weight_is_quantised(w) || xm_element_is_float(w->element) ||
        (bits != 4 && bits != 8))
        return "the weight is not integers of 4 or 8 bits with group scales";
    if (w->cols % INTEGER_K != 0 || w->group % INTEGER_K != 0)
        return "the columns or the group are not a multiple of 32";
    return xm_weight_not_in_words(w, 1);
}

static const char *
blocks_refuse(const struct xm_weight *w)
{
    if (stored_places(w) > UINT32_MAX)
        return "the weight has 8 GiB or more";
    if (!(xm_weight_meets(w) & XM_MEETS_SHORTS))
        return "the elements of this format are not integers with scales";
    return cols_refuse(w, whole_cols(w));
}

static const char *
elements_refuse(const struct xm_weight *w)
{
    const uint32_t bits = xm_element_bits(w->element);
    const bool is_half = w->element == XM_F16 && !xm_weight_is_quantised(w);
    if (!is_half && (!xm_weight_is_quantised(w) || (bits != 4 && bits != 8)))
        return "matrix engines need weights of 4 or 8 bits, or f16";
    if (w->cols % INTEGER_K != 0 || (!is_half && w->group % INTEGER_K != 0))
        return "the columns or the group are not a multiple of 32";
    return xm_weight_not_in_words(w, 1);
}

const char *
xm_matrix_refuses(const struct xm_weight *w, enum xm_element src)
{
    if (src != XM_F16)
        return "matrix engines need f16 activations";
    if (xm_weight_is_blocks(w))
        return blocks_refuse(w);
    if (!(xm_weight_meets(w) & XM_MEETS_STEPS))
        return "for many tokens, matrix engines do not support small floats and "
               "codebooks";
    return elements_refuse(w);
}

const char *
xm_matrix_shares_refuse(const struct xm_weight *w, enum xm_element src)
{
    const char *why = xm_matrix_refuses(w, src);
    if (why || xm_weight_is_blocks(w))
        return why;
    if (!xm_weight_is_quantised(w))
        return "f16 weights are read as they are";
    return w->scale_element == XM_F16
               ? NULL
               : "only f16 scales can be multiplied into the weights";
}

uint32_t
xm_matrix_lanes(const struct xm_device_info *device)
{
    return device->sub_group_sizes[0] == 8 ? 8 : 16;
}

bool
xm_matrix_is_real(const struct xm_device_info *device)
{
    return xm_device_really_has(device, XM_CAP_DPAS);
}
