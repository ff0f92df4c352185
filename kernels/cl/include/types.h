/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types of activations by name, so that one source serves f16 and f32:
 *
 *     __global const STORAGE(SRC) *x;    LOAD(SRC, x, i)    STORE(DST, y, i, value)
 *
 * with -DSRC=f16. Values are float (or long for integer types) in registers; half is only a
 * storage format, so that no device needs half arithmetic. LOAD16 and STORE16 move 16
 * neighbours from element i on, at the alignment of one element.
 *
 *   SRC  type of the activations that a kernel reads
 *   DST  type of its results
 */
#ifndef SRC
#define SRC f32
#endif
#ifndef DST
#define DST f32
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)

#define STORAGE_f16 half
#define STORAGE_f32 float
#define STORAGE_i32 int
#define STORAGE_i64 long
#define STORAGE_u8  uchar
#define STORAGE_i8  char
#define STORAGE_boolean uchar
#define STORAGE(T)  PASTE(STORAGE_, T)

#define LOAD_f16(p, i)  vload_half(0, (p) + (i))
#define LOAD_f32(p, i)  ((p)[i])
#define LOAD_i32(p, i)  ((p)[i])
#define LOAD_i64(p, i)  ((p)[i])
#define LOAD_u8(p, i)   ((p)[i])
#define LOAD_i8(p, i)   ((p)[i])
#define LOAD_boolean(p, i) ((p)[i] != 0)
#define LOAD(T, p, i)   PASTE(LOAD_, T)(p, i)

#define STORE_f16(p, i, v) vstore_half(v, 0, (p) + (i))
#define STORE_f32(p, i, v) ((p)[i] = (v))
#define STORE_i32(p, i, v) ((p)[i] = (int)(v))
#define STORE_i64(p, i, v) ((p)[i] = (long)(v))
#define STORE_u8(p, i, v)  ((p)[i] = (uchar)(v))
#define STORE_i8(p, i, v)  ((p)[i] = (char)(v))
#define STORE_boolean(p, i, v) ((p)[i] = (v) != 0)
#define STORE(T, p, i, v)  PASTE(STORE_, T)(p, i, v)

/* PoCL's vload_half16 and vstore_half16 need addresses aligned to whole vectors: halves are moved
 * as bits to or from a variable. */
typedef struct __attribute__((packed)) {
    ushort16 v;
} loose_ushort16;

static inline float16
load_halves(__global const void *p)
{
    const ushort16 bits = ((__global const loose_ushort16 *)p)->v;
    return vload_half16(0, (const half *)&bits);
}

static inline void
store_halves(__global void *p, float16 v)
{
    ushort16 bits;
    vstore_half16(v, 0, (half *)&bits);
    ((__global loose_ushort16 *)p)->v = bits;
}

/* Words at any address, aligned or not. */
typedef struct __attribute__((packed)) {
    uint16 v;
} loose_uint16;

#define LOAD16_f16(p, i)      load_halves((p) + (i))
#define LOAD16_f32(p, i)      vload16(0, (p) + (i))
#define LOAD16_i8(p, i)       convert_float16(vload16(0, (p) + (i)))
#define LOAD16(T, p, i)       PASTE(LOAD16_, T)(p, i)
#define STORE16_f16(p, i, v)  store_halves((p) + (i), v)
#define STORE16_f32(p, i, v)  vstore16(v, 0, (p) + (i))
#define STORE16(T, p, i, v)   PASTE(STORE16_, T)(p, i, v)

/* Types of elements that are only moved, by their size in bits. */
#define STORAGE_BITS_8  uchar
#define STORAGE_BITS_16 ushort
#define STORAGE_BITS_32 uint
#define STORAGE_BITS_64 ulong
#define STORAGE_BITS(n) PASTE(STORAGE_BITS_, n)
