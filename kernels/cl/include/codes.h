/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights whose elements are codes: floats below 16 bits, indices into a codebook, or floats with a
 * factor for each expert.
 *
 *     w[n][k] = number of code[n][k]  *  scale[n][k / CODE_GROUP]  *  factor
 *
 *   CODES       nf4 f4e2m1 f8e4m3 f8e5m2; f16 bf16 f32; codebook: 4-bit indices of 16 floats, which
 *               the weight has in place of zero points
 *   CODE_GROUP  columns that share a scale (SCALE); 0: no scales
 *   CODE_RUNS   1: columns, stored rows and groups are whole runs of 16, which are read at once;
 *               0: codes are read one by one
 */
#ifndef CODE_RUNS
#define CODE_RUNS 0
#endif
#define FORMATS 1

/* The quantiles of a normal distribution. */
#define NF4_NUMBERS                                                                      \
    -0x1p+0f, -0x1.647362p-1f, -0x1.0cd66p-1f, -0x1.94654p-2f, -0x1.23449ap-2f,          \
        -0x1.7a6a7ep-3f, -0x1.74f0e2p-4f, 0.0f, 0x1.45f5fep-4f, 0x1.4995c6p-3f,          \
        0x1.f809bap-3f, 0x1.5a0674p-2f, 0x1.c3497p-2f, 0x1.200f56p-1f, 0x1.722766p-1f,   \
        0x1p+0f
__constant float nf4_numbers[16] = {NF4_NUMBERS};

/* ---- one code --------------------------------------------------------------------------- */

static inline uint
nibble_at(const struct weight *w, ulong i)
{
    return w->data[i >> 1] >> (4 * (i & 1)) & 15;
}

#define CODE_nf4(w, i)      nf4_numbers[nibble_at(w, i)]
#define CODE_codebook(w, i) bytes_f32((w)->zp, nibble_at(w, i))
#define CODE_f4e2m1(w, i)   bytes_f4e2m1((w)->data, i)
#define CODE_f8e4m3(w, i)   bytes_f8e4m3((w)->data, i)
#define CODE_f8e5m2(w, i)   bytes_f8e5m2((w)->data, i)
#define CODE_f16(w, i)      bytes_f16((w)->data, i)
#define CODE_bf16(w, i)     bytes_bf16((w)->data, i)
#define CODE_f32(w, i)      bytes_f32((w)->data, i)

/* Returns the factor of a row's codes from column k to the end of its group: scale times the
 * expert's factor. */
static inline float
code_factor(const struct weight *w, ulong row, uint k)
{
    const float factor = weight_factor(w, row);
#if CODE_GROUP
    return weight_scale(w, row, k / CODE_GROUP) * factor;
#else
    return factor;
#endif
}

/* Returns weight k of a row. */
static inline float
weight_at(const struct weight *w, ulong row, uint k)
{
    return PASTE(CODE_, CODES)(w, row_begin(w, row) + k) * code_factor(w, row, k);
}

/* ---- runs of 16 ------------------------------------------------------------------------- */

/* Returns 16 codes of 4 bits from element i on; i is even. */
static inline uchar16
nibbles(const struct weight *w, ulong i)
{
    const uchar8 pairs = vload8(0, w->data + i / 2);
    uchar16 q;
    q.even = pairs & (uchar8)15;
    q.odd = pairs >> (uchar8)4;
    return q;
}

typedef struct __attribute__((packed)) {
    float16 v;
} loose_float16;

static inline float16
bits_of_halves(ushort16 bits)
{
    return vload_half16(0, (const half *)&bits);
}

/* numbers[q] for each q; `table` has the same 16 numbers in memory. */
#ifdef __AVX512F__ /* one instruction that compilers do not find */
#define LOOK_UP(table, numbers, q) look_up(numbers, q)

static inline float16
look_up(float16 numbers, uchar16 q)
{
    typedef float floats __attribute__((vector_size(64)));
    typedef int ints __attribute__((vector_size(64)));
    return __builtin_astype(
        __builtin_ia32_permvarsf512(__builtin_astype(numbers, floats),
                                    __builtin_astype(convert_int16(q), ints)),
        float16);
}
#else
#define LOOK_UP(table, numbers, q)                                                       \
    (float16)((table)[q.s0], (table)[q.s1], (table)[q.s2], (table)[q.s3], (table)[q.s4], \
              (table)[q.s5], (table)[q.s6], (table)[q.s7], (table)[q.s8], (table)[q.s9], \
              (table)[q.sa], (table)[q.sb], (table)[q.sc], (table)[q.sd], (table)[q.se], \
              (table)[q.sf])
#endif

static inline float16
codes_nf4(const struct weight *w, ulong i)
{
    const uchar16 q = nibbles(w, i);
    return LOOK_UP(nf4_numbers, (float16)(NF4_NUMBERS), q);
}

static inline float16
codes_codebook(const struct weight *w, ulong i)
{
    __global const float *numbers = (__global const float *)w->zp;
    const uchar16 q = nibbles(w, i);
    return LOOK_UP(numbers, vload16(0, numbers), q);
}

static inline float16
codes_f4e2m1(const struct weight *w, ulong i)
{
    const ushort16 q = convert_ushort16(nibbles(w, i));
    return bits_of_halves((q & (ushort)7) << (ushort)9 | (q & (ushort)8) << (ushort)12) *
           0x1p14f;
}

static inline float16
codes_f8e4m3(const struct weight *w, ulong i)
{
    const ushort16 q = convert_ushort16(vload16(0, w->data + i));
    const ushort16 size = q & (ushort)127;
    const float16 v =
        bits_of_halves(size << (ushort)7 | (q & (ushort)128) << (ushort)8) * 256.0f;
    return convert_int16(size) == 127 ? (float16)as_float(0x7fc00000u) : v;
}

static inline float16
codes_f8e5m2(const struct weight *w, ulong i)
{
    return bits_of_halves(convert_ushort16(vload16(0, w->data + i)) << (ushort)8);
}

static inline float16
codes_f16(const struct weight *w, ulong i)
{
    return load_halves(w->data + 2 * i);
}

static inline float16
codes_bf16(const struct weight *w, ulong i)
{
    const ushort16 q = ((__global const loose_ushort16 *)(w->data + 2 * i))->v;
    return as_float16(convert_uint16(q) << 16u);
}

static inline float16
codes_f32(const struct weight *w, ulong i)
{
    return ((__global const loose_float16 *)(w->data + 4 * i))->v;
}

/* Returns weights k … k + 15 of a row, 0 behind its end; k is a multiple of 16. */
static inline float16
weights_at(const struct weight *w, ulong row, uint k)
{
#if CODE_RUNS
    return PASTE(codes_, CODES)(w, row_begin(w, row) + k) * code_factor(w, row, k);
#else
    float v[16];
    for (uint i = 0; i < 16; i++)
        v[i] = k + i < w->k_count ? weight_at(w, row, k + i) : 0.0f;
    return vload16(0, v);
#endif
}

/* All weights of a kernel have the same codes: `format` is 0. */
static inline float16
weights_of_format(const uint format, const struct weight *w, ulong row, uint k)
{
    return weights_at(w, row, k);
}
