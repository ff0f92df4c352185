/* SPDX-License-Identifier: Apache-2.0
 *
 * 16 rows of 16 words become 16 columns: word j of row i goes to word i of row j.
 */
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

/* Words 0, 1 or 2, 3 of each four of a beside those of b; pairs of words likewise. */
#define LOW_WORDS(a, b)                                                                  \
    PICK(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define HIGH_WORDS(a, b)                                                                 \
    PICK(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define LOW_PAIRS(a, b)                                                                  \
    PICK(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define HIGH_PAIRS(a, b)                                                                 \
    PICK(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)

/* The first and third, or the second and fourth, four words of a, then those of b. */
#define EVEN_FOURS(a, b)                                                                 \
    PICK(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define ODD_FOURS(a, b)                                                                  \
    PICK(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)

__attribute__((always_inline)) static inline void
turn_16(int16 v[16])
{
    int16 w[16];
#pragma unroll
    for (int i = 0; i < 16; i += 4) { /* each four words: a column of four rows */
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
