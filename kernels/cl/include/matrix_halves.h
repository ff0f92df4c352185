/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts elements that are cached in 8 or 4 bits (attention_cache.h) to halves for matrix
 * engines, 8 words of two elements. The bits of an element with a constant exponent above them are
 * a half: the number plus an offset. The rest is arithmetic of two halves at once (half_pairs.h).
 *
 *   i8  q s                (1152 + q) - 1152 is exact
 *   u4  n (n n + 512) s    x (x x + 2) 4096 s with x = n / 16 = (2 + q / 8) + (c / 16 - 2)
 *
 * Each block of 16 elements has a scale s and a centre c. In K, the elements of a lane are of one
 * block. In V, a lane has a value of 16 keys, and each slot (matrix_mad.h) is of another block: so
 * c is added by slot, and the weights of the keys are multiplied by s, because there are fewer
 * weights than values.
 */
#include "half_pairs.h"

/* Add exponents to two bytes of a word, or to two nibbles that were shifted to bits 6 and 22. */
#define AS_BYTES(u)   (((u) & 0x00ff00ff) ^ 0x64806480)
#define AS_NIBBLES(u) (((u) & 0x03c003c0) | 0x40004000)

static inline float
factor_i8(struct block b)
{
    return b.scale;
}

static inline float
factor_u4(struct block b)
{
    return b.scale * 4096.0f;
}

/* Returns c / 16 - 2, which is added to the half that a nibble with its exponent is. */
static inline float
centre_of(struct block b)
{
    return b.centre * 0.0625f - 2.0f;
}
#define FACTOR(T, b) PASTE(factor_, T)(b)

/* ---- arithmetic ---------------------------------------------------------------------- */

#if MATRIX_ENGINE
/* Repeats DO(i, slot) for word i of all lanes; `slot`: the index of the first of its two slots. */
#define EIGHT_ROWS(DO)                                                                   \
    DO("0", "0")                                                                         \
    DO("1", "2")                                                                         \
    DO("2", "4")                                                                         \
    DO("3", "6")                                                                         \
    DO("4", "8")                                                                         \
    DO("5", "10")                                                                        \
    DO("6", "12")                                                                        \
    DO("7", "14")
#define ROW(name, i)          name "(" i ",0)<1;1,0> "
#define TO(op, name, i)       op " (M1_NM, " HALF_LANES ") " name "(" i ",0)<1> "
#define BYTES_ROW(i, slot)    TO("add", "XM_D", i) ROW("XM_A", i) "0xe480:hf\n"
#define ADD_LANES(i, slot)    TO("add", "XM_D", i) ROW("XM_A", i) "XM_C(0,0)<1;1,0>\n"
#define ADD_SLOTS(i, slot)    TO("add", "XM_D", i) ROW("XM_A", i) "XM_C(0," slot ")<0;2,1>\n"
#define CUBE_ROW(i, slot)                                                                \
    TO("mad", "XM_T", i) ROW("XM_D", i) ROW("XM_D", i) "0x4000:hf\n"                     \
    TO("mul", "XM_D", i) ROW("XM_D", i) ROW("XM_T", i) "\n"
#define TEMPORARY ".decl XM_T v_type=G type=hf num_elts=" EIGHT_LANES " align=GRF\n"
#define RESULT    AS_HALVES("XM_D", EIGHT_LANES, "%0") AS_HALVES("XM_A", EIGHT_LANES, "%1")

#define LEVELS(name, ADD_ROW, TYPE, N)                                                   \
    static inline uint8 name(uint8 words, TYPE centre)                                   \
    {                                                                                    \
        uint8 d;                                                                         \
        __asm__("{\n" TEMPORARY RESULT AS_HALVES("XM_C", N, "%2")                        \
                    EIGHT_ROWS(ADD_ROW) EIGHT_ROWS(CUBE_ROW) "}\n"                       \
                : "=rw"(d)                                                               \
                : "rw"(words), "rw"(centre));                                            \
        return d;                                                                        \
    }
LEVELS(lane_levels, ADD_LANES, uint, HALF_LANES)
LEVELS(slot_levels, ADD_SLOTS, slots, "16")

static inline uint8
numbers_of_bytes(uint8 words)
{
    uint8 d;
    __asm__("{\n" RESULT EIGHT_ROWS(BYTES_ROW) "}\n" : "=rw"(d) : "rw"(words));
    return d;
}
#else
static inline uint
word_level(uint word, float2 centre)
{
    const float2 n = halves(word) + centre,
                 square = halves(two_halves(n.x * n.x + 2.0f, n.y * n.y + 2.0f));
    return two_halves(n.x * square.x, n.y * square.y);
}

#define LEVELS(name, TYPE, CENTRE)                                                       \
    static inline uint8 name(uint8 words, TYPE centre)                                   \
    {                                                                                    \
        uint of_row[8];                                                                  \
        vstore8(words, 0, of_row);                                                       \
        UNROLL_PRODUCTS                                                                  \
        for (uint i = 0; i < 8; i++)                                                     \
            of_row[i] = word_level(of_row[i], CENTRE);                                   \
        return vload8(0, of_row);                                                        \
    }
LEVELS(lane_levels, uint, halves(centre))
LEVELS(slot_levels, slots, two_slots((row_a)centre, i))

static inline uint8
numbers_of_bytes(uint8 words)
{
    return halves_add(words, 0xe480e480);
}
#endif

/* Returns a with each of its 16 columns multiplied by its factor. */
static inline matrix_a
scaled_columns(matrix_a a, slots factors)
{
#if MATRIX_ENGINE && SG == 16
    matrix_a d;
#define COLUMNS_ROW(i)                                                                   \
    "mul (M1_NM, 32) XM_D(" i ",0)<1> XM_A(" i ",0)<1;1,0> XM_B(0,0)<0;16,1>\n"
    __asm__("{\n" AS_HALVES("XM_D", "128", "%0") AS_HALVES("XM_A", "128", "%1")
                AS_HALVES("XM_B", "16", "%2") COLUMNS_ROW("0") COLUMNS_ROW("1")
                    COLUMNS_ROW("2") COLUMNS_ROW("3") "}\n"
            : "=rw"(d)
            : "rw"(a), "rw"(factors));
    return d;
#elif SG == 8
    return as_int8(halves_mul(as_uint8(a), factors));
#else
    slots rows[8];
    vstore8(as_ushort8(a), 0, rows);
#pragma unroll
    for (uint i = 0; i < 8; i++)
        rows[i] = two_halves(halves(rows[i]).x * halves(factors).x, 0.0f);
    return as_short8(vload8(0, rows));
#endif
}

/* ---- words --------------------------------------------------------------------------- */

/* Return 16 neighbouring elements of a row, with exponents, in 8 words: word 2w has the elements 4w
 * and 4w + 2, word 2w + 1 the elements 4w + 1 and 4w + 3. `at` has 16 elements of i8, or 32 of u4,
 * of which `high` takes the last 16. */
static inline uint8
words_i8(uint4 at, bool high)
{
    uint8 words;
    words.even = AS_BYTES(at);
    words.odd = AS_BYTES(at >> 8);
    return words;
}

static inline uint8
words_u4(uint4 at, bool high)
{
    uint8 words;
    words.even = AS_NIBBLES(high ? at << 2 : at << 6);
    words.odd = AS_NIBBLES(high ? at >> 6 : at >> 2);
    return words;
}
#define CACHED_WORDS(T, at, high)  PASTE(words_, T)(at, high)

/* The numbers of such words as halves, not yet multiplied by FACTOR. LANE_NUMBERS takes the centre
 * of the lane's block b, SLOT_NUMBERS the centres c of the slots. */
#define LANE_NUMBERS_i8(words, b)  numbers_of_bytes(words)
#define LANE_NUMBERS_u4(words, b)  lane_levels(words, twice(centre_of(b)))
#define LANE_NUMBERS(T, words, b)  PASTE(LANE_NUMBERS_, T)(words, b)
#define SLOT_NUMBERS_i8(words, c)  numbers_of_bytes(words)
#define SLOT_NUMBERS_u4(words, c)  slot_levels(words, c)
#define SLOT_NUMBERS(T, words, c)  PASTE(SLOT_NUMBERS_, T)(words, c)
