/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes matrices b of 16 keys (matrix_mad.h) from halves of V, with 8 lanes: word c of a lane has
 * one value of the keys c and c + 8. These chips have no load that interleaves keys. Four lanes
 * read values of one key, the other four those of the next key: so two registers have 16 values of
 * both keys, and one instruction puts 8 of each key into halves of two neighbouring words. Matrix m
 * of a block of 16 PIECES values has
 *
 *     in lane l   the value (m % 2 * 2 + l / 4) * 4 PIECES + m / 2 * 4 + l % 4
 *
 * If V is cached in nibbles, each 16 bits (four nibbles) are moved like a half, and a lane reads
 * two of them: so one register has 8 of both keys, and lane l of the only matrix has number l of
 * these.
 */
#if IS_4_BITS(V_CACHE)
#define PIECES 0
typedef uint pieces;
#elif DV == 64
#define PIECES 4 /* pieces of four values that a lane reads at once; more would spill registers */
typedef ulong4 pieces;
#elif DV % (32 * ((DV + 127) / 128)) == 0
#define PIECES 2
typedef ulong2 pieces;
#else
#define PIECES 1
typedef ulong pieces;
#endif
#define PAIR_MATRICES (PIECES ? 2 * PIECES : 1)
#define LANE_BYTES    ((uint)sizeof(pieces))

#if MATRIX_ENGINE
#if PIECES == 4
#define LOAD_PIECES(p) vload4(0, (__global const ulong *)(p))
#define PAIR_HALVES    "128"
#elif PIECES == 2
#define LOAD_PIECES(p) vload2(0, (__global const ulong *)(p))
#define PAIR_HALVES    "64"
#elif PIECES == 1
#define LOAD_PIECES(p) (*(__global const ulong *)(p))
#define PAIR_HALVES    "32"
#else
#define LOAD_PIECES(p) (*(p))
#define PAIR_HALVES    "16"
#endif
#if PIECES
#define PAIR_ROWS "<16;8,1>"
#else
#define PAIR_ROWS "<8;8,1>"
#endif

#define PAIR_OF(name, operand)                                                           \
    ".decl " name " v_type=G type=uw num_elts=" PAIR_HALVES " alias=<" operand ",0>\n"
#define PUT_PAIR(word, half, name, at)                                                   \
    "mov (M1_NM, 16) XM_D(" word "," half ")<2> " name at PAIR_ROWS "\n"
#define PUT_KEYS(word, low, high, at) PUT_PAIR(word, "0", low, at) PUT_PAIR(word, "1", high, at)
/* Makes matrix d from p. `at`: the place in each p[i] of the matrix's 8 halves of both keys. */
#define PAIR_MATRIX(at)                                                                  \
    __asm__("{\n"                                                                        \
            ".decl XM_D v_type=G type=uw num_elts=128 alias=<%0,0>\n"                    \
            PAIR_OF("XM_A", "%1") PAIR_OF("XM_B", "%2") PAIR_OF("XM_C", "%3")            \
            PAIR_OF("XM_E", "%4") PAIR_OF("XM_F", "%5") PAIR_OF("XM_G", "%6")            \
            PAIR_OF("XM_H", "%7") PAIR_OF("XM_I", "%8")                                  \
            PUT_KEYS("0", "XM_A", "XM_F", at) PUT_KEYS("2", "XM_B", "XM_G", at)          \
            PUT_KEYS("4", "XM_C", "XM_H", at) PUT_KEYS("6", "XM_E", "XM_I", at) "}\n"    \
            : "=rw"(d)                                                                   \
            : "rw"(p[0]), "rw"(p[1]), "rw"(p[2]), "rw"(p[3]), "rw"(p[4]), "rw"(p[5]),    \
              "rw"(p[6]), "rw"(p[7]))
#define PAIR_CASE(m, at)                                                                 \
    case m:                                                                              \
        PAIR_MATRIX(at);                                                                 \
        break;

/* Returns matrix m. p[i]: the halves that were read of the keys 2i and 2i + 1. */
static inline int8
pair_matrix(const pieces p[8], uint m)
{
    int8 d;
    switch (m) {
        PAIR_CASE(0, "(0,0)")
#if PIECES > 0
        PAIR_CASE(1, "(0,8)")
#endif
#if PIECES > 1
        PAIR_CASE(2, "(2,0)")
        PAIR_CASE(3, "(2,8)")
#endif
#if PIECES > 2
        PAIR_CASE(4, "(4,0)")
        PAIR_CASE(5, "(4,8)")
        PAIR_CASE(6, "(6,0)")
        PAIR_CASE(7, "(6,8)")
#endif
    }
    return d;
}
#endif

/* Reads the matrices of a block of values of 16 keys. The block begins `bytes` bytes after
 * `values`, the values of a unit. */
static inline void
pair_matrices(__global const uchar *values, uint bytes, bool is_near, int8 to[PAIR_MATRICES])
{
    const uint lane = get_sub_group_local_id();
#if MATRIX_ENGINE
    const uint of_lane = lane / 4 * VALUE_BYTES + lane % 4 * LANE_BYTES;
    pieces p[8];
#pragma unroll
    for (uint i = 0; i < 8; i++)
        p[i] = LOAD_PIECES(
            words_behind(values, of_lane + (bytes + i * (2 * VALUE_BYTES)), is_near));
#pragma unroll
    for (uint m = 0; m < PAIR_MATRICES; m++)
        to[m] = pair_matrix(p, m);
#else
    for (uint m = 0; m < PAIR_MATRICES; m++) {
        const uint value =
            PIECES ? (m % 2 * 2 + lane / 4) * (4 * PIECES) + m / 2 * 4 + lane % 4 : lane;
        __global const ushort *v = (__global const ushort *)(values + bytes) + value;
        uint words[8];
        for (uint c = 0; c < 8; c++)
            words[c] =
                v[c * (VALUE_BYTES / 2)] | (uint)v[(c + 8) * (VALUE_BYTES / 2)] << 16;
        to[m] = as_int8(vload8(0, words));
    }
#endif
}

#if PIECES
/* order_pairs reorders a row's results y for the matrices of a block: then y[m] of lane l is value
 * 8 m + l. Four neighbouring values are in neighbouring lanes of one matrix; four_of_pairs returns
 * to each lane one of the values 4 `four` to 4 `four` + 3. */
static inline float
four_of_pairs(const float *y, uint four)
{
    const uint lane = get_sub_group_local_id();
    return intel_sub_group_shuffle(y[four % PIECES * 2 + four / PIECES / 2],
                                   four / PIECES % 2 * 4 + lane % 4);
}

static inline void
order_pairs(float *y)
{
    float in_order[PAIR_MATRICES];
    UNROLL_PRODUCTS
    for (uint m = 0; m < PAIR_MATRICES; m++) {
        const float low = four_of_pairs(y, 2 * m), high = four_of_pairs(y, 2 * m + 1);
        in_order[m] = get_sub_group_local_id() < 4 ? low : high;
    }
    UNROLL_PRODUCTS
    for (uint m = 0; m < PAIR_MATRICES; m++)
        y[m] = in_order[m];
}
#endif
