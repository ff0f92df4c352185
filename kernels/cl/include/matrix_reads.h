/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads tiles of K and V from the cache as operand b (matrix_mad.h) of attention's two products.
 *
 *   k^T  each lane has 16 elements of one key, in 8 words
 *   v    each lane has one value of 16 keys, in 8 words. Two keys share word c: 2c and 2c + 1 with
 *        16 lanes, c and c + 8 with 8 lanes, because the product before leaves their weights so.
 *        16 lanes have 16 neighbouring values. With 8 lanes the order of values depends on V's
 *        type (value_of, matrix_pairs.h, matrix_bytes.h)
 *
 * On a chip that can read two-dimensional blocks, such reads bring f16 into this order. On others
 * each lane reads its own key of K, and values of two keys are interleaved to words. Types of fewer
 * bits are converted to halves as they are read.
 */
#include "attention_cache.h"
#include "matrix_mad.h"
#include "matrix_halves.h"

/* number of neighbouring keys of a page that are read together */
#define UNIT        (PAGE_TOKENS % 32 == 0 && KEYS % 32 == 0 ? 32 : 16)
#define UNITS       (KEYS / UNIT)
#define VALUE_BYTES ROW_BYTES(V_CACHE, DV)

#if MATRIX_ENGINE && SG == 16 && defined(cl_intel_subgroup_2d_block_io)
#define READS_2D 1
#else
#define READS_2D 0
#endif
/* Whether K and V are read as two-dimensional blocks. A row of a block must have at least 64 bytes.
 * A block of bytes of V must have 32 keys; it gets an order of keys (key_of) that a block of K
 * cannot get, so blocks of K are read only if both caches have halves. */
#define READS_KEYS_2D (READS_2D && IS_HALF(K_CACHE) && IS_HALF(V_CACHE))
#define READS_VALUES_2D                                                                  \
    (READS_2D && VALUE_BYTES >= 64 && (IS_HALF(V_CACHE) || UNIT == 32))

/* READ_CHUNKS chunks of SG values, a value a lane, of READ_KEYS keys are read at once. With 8 lanes
 * and nibbles, a lane reads 16 bits, two neighbouring values of each of two blocks of 16: chunks 0
 * and 1 are the even and the odd values of the first block, 2 and 3 those of the second. */
#if SG == 16
#define READ_CHUNKS (IS_4_BITS(V_CACHE) ? 2 : 1)
#elif IS_HALF(V_CACHE)
#define READ_CHUNKS PAIR_MATRICES
#elif IS_4_BITS(V_CACHE)
#define READ_CHUNKS 4
#else
#define READ_CHUNKS BYTE_CHUNKS
#endif
#define READ_KEYS     (READS_VALUES_2D && UNIT == 32 ? 32 : 16)
#define READ_MATRICES (READ_KEYS / 16 * READ_CHUNKS)
#define READ_STEPS    (IS_4_BITS(K_CACHE) ? 2 : 1) /* steps of K that are read at once */
#define SCALED_STEPS  4 /* steps of K whose scales, a byte each, are read as one word */

#if SG == 8
#define AS_MATRIX(x) as_int8(x)
#else
#define AS_MATRIX(x) as_short8(x)
#endif

/* Functions of Intel's compiler that read two-dimensional blocks. The first one makes a description
 * of a block, which stays in a register: the block's address and size, and the size of the array
 * around it. Functions without this parameter would make a description for each read. x counts
 * elements of the read's width; the sizes of the array are given less one. */
#if READS_2D
int *__builtin_IB_subgroup_createBlock2DAddressPayload(long base, int bytes_of_row, int rows,
                                                       int pitch, int x, int y, int width,
                                                       int height, int blocks);
void __builtin_IB_subgroup_setBlock2DAddressPayloadBase(int *block, long base);
uint8 __builtin_IB_subgroup_block_read_ap_transpose_u32_m16k8v1(int *block, int x, int y,
                                                                int cached);
uint8 __builtin_IB_subgroup_block_read_ap_transform_u16_m16k16v1(int *block, int x, int y,
                                                                 int cached);
uint16 __builtin_IB_subgroup_block_read_ap_transform_u16_m32k16v1(int *block, int x, int y,
                                                                  int cached);
uint8 __builtin_IB_subgroup_block_read_ap_transform_u8_m32k16v1(int *block, int x, int y,
                                                                int cached);
#endif

/* Returns which of SG keys a lane has: its own number, or in each four lanes 0, 2, 1, 3. The latter
 * follows from V of 8 bits and fewer, read by 16 lanes: a word then has a byte of each of four
 * keys, of which bytes 0 and 2 become the halves of one word of b, bytes 1 and 3 those of the next.
 * The keys of K must have the same order. */
static inline uint
key_of(uint lane)
{
    return ((SG == 16) & !IS_HALF(V_CACHE)) ? (lane & 12) | (lane & 1) << 1 | (lane >> 1 & 1)
                                            : lane;
}

/* UNIT neighbouring keys of a page and their values. */
struct unit {
    struct cached k, v;
#if READS_2D
    int *k_block, *v_block;
#endif
};

static inline void
begin_unit(struct unit *u)
{
#if READS_2D
    u->k_block = __builtin_IB_subgroup_createBlock2DAddressPayload(
        0, D * 2 - 1, UNIT - 1, D * 2 - 1, 0, 0, 8, 16, 1);
    u->v_block = __builtin_IB_subgroup_createBlock2DAddressPayload(
        0, VALUE_BYTES - 1, UNIT - 1, VALUE_BYTES - 1, 0, 0, 16, READ_KEYS, 1);
#endif
}

/* Moves the unit to the keys from `row` of a page on. */
static inline void
set_unit(struct unit *u, __global uchar *page, uint row)
{
    u->k = key_row(page, row);
    u->v = value_row(page, row);
#if READS_KEYS_2D
    __builtin_IB_subgroup_setBlock2DAddressPayloadBase(u->k_block, (long)u->k.values);
#endif
#if READS_VALUES_2D
    __builtin_IB_subgroup_setBlock2DAddressPayloadBase(u->v_block, (long)u->v.values);
#endif
}

/* Chips with 8 lanes need five instructions or more to add to an address of 64 bits. If a unit does
 * not cross a multiple of 4 GiB (is_near), adding to the address's lower half is enough. */
#define NEAR_TILES (SG == 8)

static inline bool
is_within_4_gib(__global const uchar *p, uint bytes)
{
    return (uint)(ulong)p <= 0xffffffff - bytes;
}

static inline bool
unit_is_near(const struct unit *u)
{
    return !NEAR_TILES || (is_within_4_gib(u->k.values, UNIT * ROW_BYTES(K_CACHE, D)) &&
                           is_within_4_gib(u->k.scales, UNIT * SCALE_BYTES(K_CACHE, D)) &&
                           is_within_4_gib(u->v.values, UNIT * ROW_BYTES(V_CACHE, DV)) &&
                           is_within_4_gib(u->v.scales, UNIT * SCALE_BYTES(V_CACHE, DV)));
}

static inline __global const uint *
words_behind(__global const uchar *p, uint bytes, bool is_near)
{
    const uint2 at = as_uint2((ulong)p);
    return NEAR_TILES && is_near
               ? (__global const uint *)as_ulong((uint2)(at.x + bytes, at.y))
               : (__global const uint *)(p + bytes);
}

/* Reads a matrix a from local memory, where its rows lie one after the other. */
static inline matrix_a
local_matrix(__local const slots *at)
{
#if MATRIX_ENGINE && defined(cl_intel_subgroup_local_block_io)
#if SG == 8
    return as_int8(intel_sub_group_block_read8((__local const uint *)at));
#else
    return as_short8(intel_sub_group_block_read_us8((__local const ushort *)at));
#endif
#else
    slots rows[8];
#pragma unroll
    for (uint i = 0; i < 8; i++)
        rows[i] = at[i * SG + get_sub_group_local_id()];
    return AS_MATRIX(vload8(0, rows));
#endif
}

/* Returns the weights of 16 keys as matrix a. With 8 lanes p has the weights of the first 8 keys
 * and q those of the last 8; with 16 lanes p has all, and q is not used. */
static inline matrix_a
weight_matrix(float8 p, float8 q)
{
    float low[8], high[8];
    slots rows[8];
    vstore8(p, 0, low);
    vstore8(q, 0, high);
#pragma unroll
    for (uint i = 0; i < 8; i++)
#if SG == 8
        rows[i] = two_halves(low[i], high[i]);
#else
        rows[i] = (slots)two_halves(low[i], 0.0f);
#endif
    return AS_MATRIX(vload8(0, rows));
}

/* Returns a mask for a matrix b of 16 keys, in which the bits of keys that exist are 1, others 0.
 * p, q: whether this lane's key exists, of the keys that weight_matrix has in p and q. */
static inline uint8
slot_masks(bool p, bool q)
{
    const uint low = p ? 0xffff : 0, high = q ? 0xffff : 0;
    uint masks[8];
    UNROLL_PRODUCTS
    for (uint c = 0; c < 8; c++)
#if SG == 8
        masks[c] = intel_sub_group_shuffle(low, c) | intel_sub_group_shuffle(high, c) << 16;
#else
        masks[c] = intel_sub_group_shuffle(low, 2 * c) |
                   intel_sub_group_shuffle(high, 2 * c + 1) << 16;
#endif
    return vload8(0, masks);
}

/* Returns the scales, a byte each, of SCALED_STEPS steps from `step` on, of this lane's key among
 * the SG keys of a unit from `first` on; 0 if K has no scales. */
static inline uint
key_scales(const struct unit *u, uint first, uint step, bool is_near)
{
    const uint row = first + key_of(get_sub_group_local_id());
    return HAS_SCALES(K_CACHE)
               ? *words_behind(u->k.scales, row * SCALE_BYTES(K_CACHE, D) + step, is_near)
               : 0;
}

/* Returns which of the 16 elements of a step of q is multiplied by slot i of K: converting K to
 * halves changes the order of its elements. */
static inline uint
element_of_slot(uint i)
{
    return IS_HALF(K_CACHE) ? i : (i & 12) | (i & 1) << 1 | (i >> 1 & 1);
}

/* Returns the index of the value that a lane has in chunk c; both are counted from a multiple of 16
 * values on. */
static inline uint
value_of(uint c, uint lane)
{
    return SG == 8 && IS_4_BITS(V_CACHE) ? c / 2 * 16 + lane * 2 + c % 2 : c * SG + lane;
}

/* Reads READ_STEPS matrices k^T: steps of 16 elements from `step` on, of the SG keys of a unit from
 * `first` on. `scales`: the word of key_scales that has the scales of these steps. */
static inline void
key_matrices(const struct unit *u, uint first, uint step, uint scales, bool is_near,
             int8 to[READ_STEPS])
{
#if READS_KEYS_2D
    to[0] = as_int8(__builtin_IB_subgroup_block_read_ap_transpose_u32_m16k8v1(
        u->k_block, step * 8, first, 0));
#elif IS_HALF(K_CACHE)
    const uint row = first + key_of(get_sub_group_local_id());
    to[0] = as_int8(
        vload8(0, words_behind(u->k.values, row * (D * 2) + step * 32, is_near)));
#else
    const uint row = first + key_of(get_sub_group_local_id());
    const uint bytes = row * ROW_BYTES(K_CACHE, D) + ROW_BYTES(K_CACHE, 16) * step;
    const uint4 at = vload4(0, words_behind(u->k.values, bytes, is_near));
#pragma unroll
    for (uint i = 0; i < READ_STEPS; i++) {
        const struct block b = BLOCK_OF(K_CACHE, scales >> (step + i) % 4 * 8 & 255);
        const uint8 words = LANE_NUMBERS(K_CACHE, CACHED_WORDS(K_CACHE, at, i), b);
        to[i] = as_int8(halves_mul(words, twice(FACTOR(K_CACHE, b))));
    }
#endif
}

/* Whether V has bytes which 8 lanes convert to halves by move instructions. */
#define MOVES_BYTES (SG == 8 && !IS_HALF(V_CACHE) && !IS_4_BITS(V_CACHE))
#if MOVES_BYTES
#include "matrix_bytes.h"
#elif SG == 8
#include "matrix_pairs.h"
#endif

/* READ_CHUNKS chunks of 16 keys before they are converted to halves. With 16 lanes a word has a
 * byte of each of four keys; with 8 lanes word c has 16 bits of each of the keys c and c + 8, or
 * the type is that of matrix_bytes.h. */
#if MOVES_BYTES
typedef struct byte_values key_words;
#elif SG == 8
typedef uint8 key_words;
#else
typedef uint4 key_words;
#endif

#if !IS_HALF(V_CACHE)
static inline void
load_key_words(const struct unit *u, uint key, uint column, bool is_near, key_words *to)
{
#if MOVES_BYTES
    load_byte_values(u->v.values, key * VALUE_BYTES + column, is_near, to);
#elif SG == 8
    int8 pairs[PAIR_MATRICES];
    pair_matrices(u->v.values, key * VALUE_BYTES + column, is_near, pairs);
    *to = as_uint8(pairs[0]);
#else
    uint words[4];
#pragma unroll
    for (uint w = 0; w < 4; w++) {
        __global const uchar *v = u->v.values + (key + 4 * w) * VALUE_BYTES + column +
                                  get_sub_group_local_id();
        words[w] = v[0] | (uint)v[VALUE_BYTES] << 8 | (uint)v[2 * VALUE_BYTES] << 16 |
                   (uint)v[3 * VALUE_BYTES] << 24;
    }
    *to = vload4(0, words);
#endif
}

/* Returns the scales, a byte each, of the blocks of READ_CHUNKS chunks of a row of V, from the
 * value `first` on. */
static inline uint
value_scales(const struct unit *u, uint row, uint first, bool is_near)
{
    __global const uchar *at = (__global const uchar *)words_behind(
        u->v.scales, row * SCALE_BYTES(V_CACHE, DV) + first / CACHE_BLOCK, is_near);
    switch (READ_CHUNKS * SG / CACHE_BLOCK) {
    case 1: return *at;
    case 2: return *(__global const ushort *)at;
    default: return *(__global const uint *)at;
    }
}

/* Returns chunk n as matrix b, not yet multiplied by the factors of its slots. `centres`: the
 * centres of the slots' blocks (matrix_halves.h). */
static inline int8
chunk_matrix(const key_words *of, uint n, slots centres)
{
#if MOVES_BYTES
    return byte_value_matrix(of, n);
#elif SG == 8
    const uint8 words = *of;
    return as_int8(SLOT_NUMBERS(V_CACHE,
                                AS_NIBBLES(n == 0   ? words << 6
                                           : n == 1 ? words >> 2
                                           : n == 2 ? words << 2
                                                    : words >> 6),
                                centres));
#else
    return as_int8(SLOT_NUMBERS(V_CACHE, CACHED_WORDS(V_CACHE, *of, n), centres));
#endif
}

/* Returns chunk_matrix of chunk n, and sets *factors to the factors of its slots. `low`:
 * value_scales of this lane's key; `high`: with 8 lanes, of the key 8 after it. */
static inline int8
scaled_chunk(const key_words *of, uint n, uint low, uint high, slots *factors)
{
    const uint shift = value_of(n, 0) / CACHE_BLOCK * 8;
    const struct block first = BLOCK_OF(V_CACHE, low >> shift & 255);
#if SG == 8
    const struct block second = BLOCK_OF(V_CACHE, high >> shift & 255);
    *factors = two_halves(FACTOR(V_CACHE, first), FACTOR(V_CACHE, second));
    return chunk_matrix(of, n, two_halves(centre_of(first), centre_of(second)));
#else
    *factors = (slots)two_halves(FACTOR(V_CACHE, first), 0.0f);
    return chunk_matrix(of, n, (slots)two_halves(centre_of(first), 0.0f));
#endif
}
#endif

/* Returns the weights a of 16 keys, multiplied by the factors of a chunk's slots if V has such. */
static inline matrix_a
chunk_weights(matrix_a a, slots factors)
{
    return IS_HALF(V_CACHE) ? a : scaled_columns(a, factors);
}

/* READ_CHUNKS chunks of the values of READ_KEYS keys, as they are read. */
struct values {
#if IS_HALF(V_CACHE)
    int8 matrices[READ_MATRICES];
#else
    key_words words[READ_KEYS / 16];
    uint low[READ_KEYS / 16], high[READ_KEYS / 16]; /* value_scales (see scaled_chunk) */
#endif
};

/* Reads the values of a unit from the value `first` and from the key `key` on. */
static inline void
read_values(const struct unit *u, uint key, uint first, bool is_near, struct values *to)
{
#if !IS_HALF(V_CACHE)
    const uint column = first * VALUE_BYTES / DV;
#if READS_VALUES_2D
    const uint8 all = __builtin_IB_subgroup_block_read_ap_transform_u8_m32k16v1(
        u->v_block, column, key, 0);
#endif
    UNROLL_PRODUCTS
    for (uint k = 0; k < READ_KEYS / 16; k++) {
        const uint row = key + 16 * k + key_of(get_sub_group_local_id());
        to->low[k] = value_scales(u, row, first, is_near);
        to->high[k] = SG == 8 ? value_scales(u, row + 8, first, is_near) : 0;
#if READS_VALUES_2D
        to->words[k] = k ? all.hi : all.lo;
#else
        load_key_words(u, key + 16 * k, column, is_near, &to->words[k]);
#endif
    }
#elif READS_VALUES_2D && READ_KEYS == 32
    const uint16 v = __builtin_IB_subgroup_block_read_ap_transform_u16_m32k16v1(
        u->v_block, first, key, 0);
    to->matrices[0] = as_int8(v.lo); /* the first 16 keys; then the other 16 */
    to->matrices[1] = as_int8(v.hi);
#elif READS_VALUES_2D
    to->matrices[0] =
        as_int8(__builtin_IB_subgroup_block_read_ap_transform_u16_m16k16v1(
            u->v_block, first, key, 0));
#elif SG == 8
    int8 pairs[PAIR_MATRICES];
    pair_matrices(u->v.values, (key * DV + first) * 2, is_near, pairs);
#pragma unroll
    for (uint m = 0; m < PAIR_MATRICES; m++)
        to->matrices[m] = pairs[m];
#else
    uint words[8];
#pragma unroll
    for (uint c = 0; c < 8; c++) {
        __global const ushort *v = (__global const ushort *)u->v.values + (key + 2 * c) * DV +
                                   first + get_sub_group_local_id();
        words[c] = v[0] | (uint)v[DV] << 16;
    }
    to->matrices[0] = as_int8(vload8(0, words));
#endif
}

/* Returns matrix n of the values as b: chunk n % READ_CHUNKS of 16 keys from 16 (n / READ_CHUNKS)
 * on. Sets *factors for chunk_weights, unless V has halves. */
static inline int8
value_matrix(const struct values *v, uint n, slots *factors)
{
#if IS_HALF(V_CACHE)
    return v->matrices[n];
#else
    const uint k = n / READ_CHUNKS;
    return scaled_chunk(&v->words[k], n % READ_CHUNKS, v->low[k], v->high[k], factors);
#endif
}
