/* SPDX-License-Identifier: Apache-2.0
 *
 * Units (units.h) of weights in blocks. A format defines how its bytes become a unit if that is
 * faster than 16 columns at a time:
 *
 *     void <name>_unit(block, i, u)   decodes columns 128 i … of the block or blocks at an
 *                                     address; UNIT_<name> is 1, ZERO_<name> the zero point of
 *                                     the integers: 0 or a power of two, BITS_<name> the bits of
 *                                     an integer if there are fewer than 8. A format with BITS
 *                                     and 256 columns also sets multiplier, taken and d
 */
#ifdef UNITS
typedef struct __attribute__((packed)) {
    uint4 v;
} loose_uint4;

typedef struct __attribute__((packed)) {
    uint8 v;
} loose_uint8;

static inline uint4
loose4(__global const uchar *p)
{
    return ((__global const loose_uint4 *)p)->v;
}

/* Returns 16 bytes of each of four blocks, which are `step` bytes apart. */
static inline uint16
quads(__global const uchar *p, const uint step)
{
    return (uint16)(loose4(p), loose4(p + step), loose4(p + 2 * step),
                    loose4(p + 3 * step));
}

/* Sets the scale of each of the four sub-blocks of 32 columns. */
static inline void
put_factors(float4 f, struct unit *u)
{
    u->factor[0] = u->factor[1] = SPREAD4(f, 0);
}

/* Returns 16 bits of each of four blocks; block_halves, a half of each. */
static inline ushort4
block_ushorts(__global const uchar *p, const uint step)
{
    return (ushort4)(block_ushort(p), block_ushort(p + step), block_ushort(p + 2 * step),
                     block_ushort(p + 3 * step));
}

static inline float4
block_halves(__global const uchar *p, const uint step)
{
    return half_bits4(block_ushorts(p, step));
}

/* Returns table[q] for each byte q, which is below 16. */
static inline uint16
look_up_words(char16 table, uint16 q)
{
#ifdef __AVX512BW__
    typedef char bytes __attribute__((vector_size(64)));
    const int4 t = as_int4(table);
    return __builtin_astype(
        __builtin_ia32_pshufb512(__builtin_astype((int16)(t, t, t, t), bytes),
                                 __builtin_astype(q, bytes)),
        uint16);
#elif defined(__AVX2__)
    typedef char bytes __attribute__((vector_size(32)));
    const int4 t = as_int4(table);
    const bytes both = __builtin_astype((int8)(t, t), bytes);
    const bytes a = __builtin_ia32_pshufb256(both, __builtin_astype(q.lo, bytes));
    const bytes b = __builtin_ia32_pshufb256(both, __builtin_astype(q.hi, bytes));
    return (uint16)(__builtin_astype(a, uint8), __builtin_astype(b, uint8));
#else
    uchar16 v[4];
    v[0] = as_uchar16(look_up_bytes(table, as_uchar16(q.s0123)));
    v[1] = as_uchar16(look_up_bytes(table, as_uchar16(q.s4567)));
    v[2] = as_uchar16(look_up_bytes(table, as_uchar16(q.s89ab)));
    v[3] = as_uchar16(look_up_bytes(table, as_uchar16(q.scdef)));
    return (uint16)(as_uint4(v[0]), as_uint4(v[1]), as_uint4(v[2]), as_uint4(v[3]));
#endif
}

/* Returns signed bytes plus `zero`. */
static inline uint16
with_zero(uint16 q, const uint zero)
{
    return __builtin_astype(__builtin_astype(q, uchar64) + (uchar)zero, uint16);
}

/* Returns 64 bits as bytes, the lowest bit first: `set` for a bit that is set, else 0. */
static inline uint16
bits_as_bytes(ulong bits, const uchar set)
{
    uint16 v;
#ifdef __AVX512BW__
    v = __builtin_astype(__builtin_ia32_cvtmask2b512(bits), uint16);
#else
    v.s0123 = as_uint4(spread_bits((uint)bits & 0xffff));
    v.s4567 = as_uint4(spread_bits((uint)(bits >> 16) & 0xffff));
    v.s89ab = as_uint4(spread_bits((uint)(bits >> 32) & 0xffff));
    v.scdef = as_uint4(spread_bits((uint)(bits >> 48) & 0xffff));
#endif
    return v & (uint)(set * 0x01010101u);
}
#endif
