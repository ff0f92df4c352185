/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes weights of elements to halves, one row in each lane, in the order of steps.h: integers of
 * 4 or 8 bits in groups, and f16. A unit is 32 columns, that is two steps.
 *
 * An integer q < 2^n, put by a mask and an or below the exponent of 2^n, is the half 2^n + q. One
 * instruction subtracts 2^n and the zero point, exactly. Another one multiplies by a scale of type
 * f16, which rounds the product to a half. Other scales multiply the sums that matrix engines
 * compute for their group (FACTOR_SCALE 1).
 *
 * A zero point that is no integer is subtracted in two parts: the nearest integer, then the rest.
 */
#define UNIT_K     32
#define UNIT_STEPS (UNIT_K / 16)
#if GROUP % UNIT_K
#error "a group is whole units"
#endif

/* Elements of a 32-bit word; words of a unit. */
#define STEP_PLANES (PLANES == 1 ? 2 : PLANES)
#define UNIT_WORDS  (UNIT_K / STEP_PLANES)

#define IS_HALF_bf16 0
#define FACTOR_SCALE (GROUP && !IS_HALF(SCALE))
/* Halves below 2^-14 are subnormal, and matrix engines may treat these as 0: products with scales
 * are this many times larger. So weights above 4094 overflow. */
#define SCALE_TIMES (GROUP && !FACTOR_SCALE ? 16.0f : 1.0f)

/* Where a lane's row begins: its first word, its first scale, and the index of its first group. */
struct element_row {
    __global const uint *words;
    __global const uchar *scale;
    uint group;
};

static inline struct element_row
element_row(const struct weight *w, ulong row)
{
    const ulong begin = row_begin(w, row), group = scale_behind(w, row, begin, 0);
    struct element_row r = {.words = (__global const uint *)w->data + begin / STEP_PLANES};
#if GROUP
    r.scale = w->scale + group * SIZE(SCALE);
    r.group = (uint)group;
#endif
    return r;
}

/* The constants of a group, each a half twice in a word: the offsets added in each step of a unit,
 * the rest of the zero point, added last, and the scale. `factor` is the scale as a float. */
struct group_halves {
    uint offset[UNIT_STEPS], rest, scale;
    float factor;
};

#if GROUP
/* Returns how many scales lie from one group of a row to the next. */
static inline uint
groups_apart(const struct weight *w)
{
    return GROUP_MAJOR ? w->view.z : 1;
}

#define OFFSET_f16  0
#define OFFSET_bf16 0
#define OFFSET_f32  0
/* SAME_ZP: zero points have the weights' type, so that their bits become part of halves. FLOAT_ZP:
 * zero points may be no integers. */
#define SAME_ZP  (PASTE(PLANES_, ZP) == PLANES && PASTE(OFFSET_, ZP) == OFFSET)
#define FLOAT_ZP (HAS_ZP && PASTE(PLANES_, ZP) == 1)

#if HAS_ZP && SAME_ZP
/* Returns the bits of the zero point of group first + g of a row. If `first` is even and the zero
 * points of a row are contiguous, every lane has the same offset to its row's first byte, so that
 * compilers compute addresses outside of the loop. */
static inline uint
zero_bits(const struct weight *w, const struct element_row *row, uint first, const uint g,
          const bool is_even)
{
    const uint i = ZP_SCALAR ? 0 : row->group + (first + g) * groups_apart(w);
    if (PLANES == 4)
        return w->zp[i];
    if (ZP_SCALAR || GROUP_MAJOR || !is_even)
        return w->zp[i / 2] >> i % 2 * 4 & 15;
    return (w->zp + (row->group + g % 2) / 2)[first / 2 + g / 2] >>
               (row->group + g) % 2 * 4 &
           15;
}
#endif

/* Sets the offsets of g for zero point `zero`; returns the difference of `zero` to the nearest
 * integer for which halves are exact. */
static inline float
take_zero(float zero, struct group_halves *g)
{
    const float near = clamp(rint(zero), -512.0f, 512.0f);
    g->offset[0] = twice(-1024.0f - OFFSET - near);
    g->offset[1] = PLANES == 8 ? twice(-64.0f - OFFSET - near) : g->offset[0];
    return zero - near;
}

/* Sets the offsets of g from the bits of a zero point, which are zero point + OFFSET. */
static inline void
take_zero_bits(uint bits, struct group_halves *g)
{
    g->offset[0] = bits | bits << 16 | 0xe400e400u;                   /* -(1024 + bits) */
    g->offset[1] = PLANES == 8 ? bits << 4 | bits << 20 | 0xd400d400u /* -(64 + bits) */
                               : g->offset[0];
}

/* Returns the constants of group first + g of a row; `is_even`: `first` is even. */
static inline struct group_halves
group_halves(const struct weight *w, const struct element_row *row, uint first,
             const uint g, const bool is_even)
{
    const uint behind = (first + g) * groups_apart(w);
    const float scale = ALIGNED(SCALE, row->scale, behind);
    struct group_halves h = {.factor = scale};
    if (!FACTOR_SCALE)
        h.scale = twice(scale * SCALE_TIMES);
#if !HAS_ZP
    take_zero_bits(OFFSET, &h);
#elif SAME_ZP
    take_zero_bits(zero_bits(w, row, first, g, is_even) ^ OFFSET, &h);
#else
    const float rest = take_zero(zero_point_at(w, row->group + behind), &h);
    h.rest = twice(FACTOR_SCALE ? -rest : -rest * scale * SCALE_TIMES);
#endif
    return h;
}

/* Halves 2^n + q of the integers in the lowest bits of each half of v, for step s of a unit. The
 * sign bit of signed integers is flipped. */
#define HALVES_OF(v, mask, base) (((v) & (mask)) ^ ((base) ^ (FLIP & (mask))))
#if PLANES == 8
#define INTEGER_HALVES(v, s)                                                             \
    ((s) ? HALVES_OF(v, 0x00f000f0u, 0x54005400u)                                        \
         : HALVES_OF(v, 0x000f000fu, 0x64006400u))
#else
#define INTEGER_HALVES(v, s) HALVES_OF(v, 0x00ff00ffu, 0x64006400u)
#endif

/* Returns step s of a unit: its integers minus the zero point, times the scale if that is a
 * half. */
static inline int8
integer_step(const uint words[UNIT_WORDS], const struct group_halves *g, const uint s)
{
    uint q[8];
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        const uint word = words[PLANES == 8 ? i : s * 4 + i];
        q[2 * i] = INTEGER_HALVES(word, s);
        q[2 * i + 1] = INTEGER_HALVES(word >> 8, s);
    }
    const uint8 v = halves_add(vload8(0, q), g->offset[s]);
    if (FACTOR_SCALE)
        return as_int8(FLOAT_ZP ? halves_add(v, g->rest) : v);
    return as_int8(FLOAT_ZP ? halves_mad(v, g->scale, g->rest) : halves_mul(v, g->scale));
}
#endif

/* Decodes the unit that begins at `words` into two steps. */
static inline void
make_unit(__global const uint *words, const struct group_halves *g, int8 b[UNIT_STEPS])
{
    uint w[UNIT_WORDS];
#pragma unroll
    for (uint i = 0; i < UNIT_WORDS; i += 4)
        vstore4(vload4(0, words + i), 0, w + i);
#pragma unroll
    for (uint s = 0; s < UNIT_STEPS; s++) {
#if GROUP
        b[s] = integer_step(w, g, s);
#else
        b[s] = as_int8(vload8(s, w));
#endif
    }
}
