/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in blocks: what the kernels know of a format is one word of format_<name>.h,
 *
 *     float16 <name>_values(block, i)     numbers 16 i … 16 i + 15 of the block at that address
 *
 * and its sizes, COLUMNS_<name> and BYTES_<name>. Weights of one kernel may differ in format: a
 * weight says which of FORMAT0, FORMAT1, FORMAT2 it has, mostly a constant after inlining. Where
 * all are of one, there is FORMAT0 only.
 */
#ifdef FORMAT2
#define FORMATS 3
#elif defined(FORMAT1)
#define FORMATS 2
#else
#define FORMATS 1
#endif

/* 16 bytes at any address as numbers. */
static inline uchar16
block_bytes16(__global const uchar *p)
{
    return vload16(0, p);
}

static inline float
block_half(__global const uchar *p)
{
    return half_bits(as_ushort(vload2(0, p)));
}

#include "k_scales.h"

#include "format_*.h"

#define FORMAT_VALUES(format, w, row, k)                                                 \
    PASTE(format, _values)(                                                              \
        (w)->data + ((row) * ((w)->view.x / PASTE(COLUMNS_, format)) +                   \
                     ((w)->view.y + (k)) / PASTE(COLUMNS_, format)) *                    \
                        PASTE(BYTES_, format),                                           \
        ((w)->view.y + (k)) % PASTE(COLUMNS_, format) / 16)

/* Weights k … k + 15 of a row; k is a multiple of 16, `format` the weight's. */
static inline float16
weights_of_format(const uint format, const struct weight *w, ulong row, uint k)
{
#if FORMATS == 3
    if (format == 2)
        return FORMAT_VALUES(FORMAT2, w, row, k);
#endif
#if FORMATS > 1
    if (format == 1)
        return FORMAT_VALUES(FORMAT1, w, row, k);
#endif
    return FORMAT_VALUES(FORMAT0, w, row, k);
}

static inline float16
weights_at(const struct weight *w, ulong row, uint k)
{
    return weights_of_format(w->format, w, row, k);
}

/* Weight k of a row. */
static inline float
weight_at(const struct weight *w, ulong row, uint k)
{
    float v[16];
    vstore16(weights_at(w, row, k / 16 * 16), 0, v);
    return v[k % 16];
}
