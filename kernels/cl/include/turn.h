/* SPDX-License-Identifier: Apache-2.0
 *
 * Transposes vectors: lane i of each becomes vector i. Interleaves bytes of two vectors. Horizontal
 * reductions.
 */
/* Keeps a vector in one register: compilers split vectors that are shuffled afterwards, which takes
 * several times as many instructions. */
#ifdef __AVX512F__
#define IN_ONE(v) __asm__("" : "+vr"(v))
#else
#define IN_ONE(v)
#endif

/* TURN defines a transposition of n vectors of n elements: v[r].s[i] -> v[i].s[r]. Interleaving
 * vectors n / 2 apart moves one bit of the row's index into the column's index; this is done once
 * for each bit of n - 1. */
#define LOW16(a, b)                                                                      \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH16(a, b)                                                                     \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,  \
                            15, 31)
#define LOW8(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH8(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define TURN(name, T, n)                                                                 \
    __attribute__((always_inline)) static inline void name(T v[n])                       \
    {                                                                                    \
        _Pragma("unroll") for (uint step = 1; step < n; step *= 2)                       \
        {                                                                                \
            T t[n];                                                                      \
            _Pragma("unroll") for (uint i = 0; i < n / 2; i++)                           \
            {                                                                            \
                t[2 * i] = LOW##n(v[i], v[i + n / 2]);                                   \
                t[2 * i + 1] = HIGH##n(v[i], v[i + n / 2]);                              \
            }                                                                            \
            _Pragma("unroll") for (uint i = 0; i < n; i++)                               \
            {                                                                            \
                IN_ONE(t[i]);                                                            \
                v[i] = t[i];                                                             \
            }                                                                            \
        }                                                                                \
    }
TURN(turn_pairs, ulong8, 8)
#ifdef __AVX512F__
TURN(turn_over, uint16, 16)
#endif

/* Transposes: v[r].s[i] -> out[i].s[r]. */
__attribute__((always_inline)) static inline void
turn_quads(const float4 v[16], float16 out[4])
{
    float16 t[4], even[2], odd[2];
    for (uint i = 0; i < 4; i++)
        t[i] = (float16)(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
    for (uint i = 0; i < 2; i++) {
        even[i] = (float16)(t[2 * i].even, t[2 * i + 1].even);
        odd[i] = (float16)(t[2 * i].odd, t[2 * i + 1].odd);
    }
    out[0] = (float16)(even[0].even, even[1].even);
    out[1] = (float16)(odd[0].even, odd[1].even);
    out[2] = (float16)(even[0].odd, even[1].odd);
    out[3] = (float16)(odd[0].odd, odd[1].odd);
}

#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

/* Interleave words 0, 1 (LOW) or 2, 3 (HIGH) of each four words of a with those of b; LOW_PAIRS and
 * HIGH_PAIRS do the same with pairs of words. */
#define LOW_WORDS(a, b)                                                                  \
    PICK(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define HIGH_WORDS(a, b)                                                                 \
    PICK(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define LOW_PAIRS(a, b)                                                                  \
    PICK(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define HIGH_PAIRS(a, b)                                                                 \
    PICK(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)

/* The first and third (EVEN), or second and fourth (ODD), four words of a, then those of b. */
#define EVEN_FOURS(a, b)                                                                 \
    PICK(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define ODD_FOURS(a, b)                                                                  \
    PICK(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)

/* Steps of horizontal reductions by OP. FOLD_WORDS of two pairs of vectors, then FOLD_PAIRS of the
 * results, reduce four vectors to one that has a word of each in every 128 bits. FOLD_FOURS of two
 * such vectors, and of two of its results, makes one word of each of 16 vectors. */
#define FOLD_WORDS(OP, a, b) OP(LOW_WORDS(a, b), HIGH_WORDS(a, b))
#define FOLD_PAIRS(OP, a, b) OP(LOW_PAIRS(a, b), HIGH_PAIRS(a, b))
#define FOLD_FOURS(OP, a, b) OP(EVEN_FOURS(a, b), ODD_FOURS(a, b))

/* Interleave the first (LOW), or the last (HIGH), eight of each 16 bytes of a and b. */
#define EIGHT_BYTES(i)                                                                   \
    (i), (i) + 64, (i) + 1, (i) + 65, (i) + 2, (i) + 66, (i) + 3, (i) + 67, (i) + 4,     \
        (i) + 68, (i) + 5, (i) + 69, (i) + 6, (i) + 70, (i) + 7, (i) + 71
#define LOW_BYTES(a, b)                                                                  \
    PICK(a, b, EIGHT_BYTES(0), EIGHT_BYTES(16), EIGHT_BYTES(32), EIGHT_BYTES(48))
#define HIGH_BYTES(a, b)                                                                 \
    PICK(a, b, EIGHT_BYTES(8), EIGHT_BYTES(24), EIGHT_BYTES(40), EIGHT_BYTES(56))

__attribute__((always_inline)) static inline void
turn_16(int16 v[16])
{
    int16 w[16];
#pragma unroll
    for (int i = 0; i < 16; i += 4) { /* each four words become a column of four rows */
        const int16 a = LOW_WORDS(v[i], v[i + 1]), b = LOW_WORDS(v[i + 2], v[i + 3]);
        const int16 c = HIGH_WORDS(v[i], v[i + 1]), d = HIGH_WORDS(v[i + 2], v[i + 3]);
        w[i] = LOW_PAIRS(a, b);
        w[i + 1] = HIGH_PAIRS(a, b);
        w[i + 2] = LOW_PAIRS(c, d);
        w[i + 3] = HIGH_PAIRS(c, d);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int16 a = EVEN_FOURS(w[i], w[4 + i]), b = ODD_FOURS(w[i], w[4 + i]);
        const int16 c = EVEN_FOURS(w[8 + i], w[12 + i]);
        const int16 d = ODD_FOURS(w[8 + i], w[12 + i]);
        v[i] = EVEN_FOURS(a, c);
        v[4 + i] = EVEN_FOURS(b, d);
        v[8 + i] = ODD_FOURS(a, c);
        v[12 + i] = ODD_FOURS(b, d);
    }
}

#ifndef __AVX512F__
/* Without AVX-512 a vector is two registers: it is transposed in quarters, because that takes fewer
 * shuffles between registers. */
__attribute__((always_inline)) static inline void
turn_over(uint16 v[16])
{
    int16 w[16];
#pragma unroll
    for (uint i = 0; i < 16; i++)
        w[i] = as_int16(v[i]);
    turn_16(w);
#pragma unroll
    for (uint i = 0; i < 16; i++)
        v[i] = as_uint16(w[i]);
}
#endif
