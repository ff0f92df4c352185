/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations of those built-in functions of OpenCL C that kernels call, for compilers that would
 * else read 18000 lines of them for every program (XM_CAP_SLOW_BUILTINS, runtime/quirks.def): the
 * options then define the guard of that header (_OPENCL_H_), and the engine puts this file before
 * the kernel. A program that does not build with it is built once more with the compiler's own
 * header, so that a function that is missing here costs time and nothing else.
 *
 * The names, types and attributes are those of the compiler's header; macros by which the driver
 * renames functions apply here as well.
 */
/* Silences warnings about passing float16 on a processor without 512-bit registers: all of a kernel
 * is compiled for one processor, so that calling conventions agree. The driver would report the
 * number of warnings on the user's terminal. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpsabi"
#endif

#define OVERLOAD   __attribute__((overloadable))
#define VALUE      __attribute__((overloadable, const))
#define READ       __attribute__((overloadable, pure))
#define CONVERGENT __attribute__((overloadable, convergent))

#define WIDTHS(M, T) M(T) M(T##2) M(T##4) M(T##8) M(T##16)

/* ---- where a work-item is ---- */

VALUE uint get_work_dim(void);
VALUE size_t get_global_size(uint);
VALUE size_t get_global_id(uint);
VALUE size_t get_local_size(uint);
VALUE size_t get_local_id(uint);
VALUE size_t get_num_groups(uint);
VALUE size_t get_group_id(uint);
VALUE size_t get_global_offset(uint);
OVERLOAD uint get_sub_group_size(void);
OVERLOAD uint get_max_sub_group_size(void);
OVERLOAD uint get_num_sub_groups(void);
OVERLOAD uint get_sub_group_id(void);
OVERLOAD uint get_sub_group_local_id(void);

CONVERGENT void barrier(cl_mem_fence_flags);
CONVERGENT void sub_group_barrier(cl_mem_fence_flags);
OVERLOAD int atomic_inc(volatile __global int *);
OVERLOAD uint atomic_inc(volatile __global uint *);
OVERLOAD int atomic_inc(volatile __local int *);
OVERLOAD uint atomic_inc(volatile __local uint *);
OVERLOAD uint atomic_add(volatile __local uint *, uint);

/* ---- values ---- */

#define ONE(T)                                                                           \
    VALUE T acos(T);                                                                     \
    VALUE T acosh(T);                                                                    \
    VALUE T asin(T);                                                                     \
    VALUE T asinh(T);                                                                    \
    VALUE T atan(T);                                                                     \
    VALUE T atanh(T);                                                                    \
    VALUE T ceil(T);                                                                     \
    VALUE T cos(T);                                                                      \
    VALUE T cosh(T);                                                                     \
    VALUE T erf(T);                                                                      \
    VALUE T exp(T);                                                                      \
    VALUE T expm1(T);                                                                    \
    VALUE T fabs(T);                                                                     \
    VALUE T floor(T);                                                                    \
    VALUE T log(T);                                                                      \
    VALUE T log1p(T);                                                                    \
    VALUE T rint(T);                                                                     \
    VALUE T round(T);                                                                    \
    VALUE T sign(T);                                                                     \
    VALUE T sin(T);                                                                      \
    VALUE T sinh(T);                                                                     \
    VALUE T sqrt(T);                                                                     \
    VALUE T tan(T);                                                                      \
    VALUE T tanh(T);                                                                     \
    VALUE T fmod(T, T);                                                                  \
    VALUE T fmax(T, T);                                                                  \
    VALUE T fmin(T, T);                                                                  \
    VALUE T pow(T, T);                                                                   \
    VALUE T fma(T, T, T);
WIDTHS(ONE, float)
#undef ONE

#define ONE(T)                                                                           \
    VALUE T max(T, T);                                                                   \
    VALUE T min(T, T);                                                                   \
    VALUE T clamp(T, T, T);
WIDTHS(ONE, float)
ONE(int) ONE(uint) ONE(long) ONE(ulong) ONE(uint4) ONE(int8) ONE(int16) ONE(uint16)
#undef ONE

VALUE ulong mul_hi(ulong, ulong);
VALUE uint popcount(uint);
VALUE uint rotate(uint, uint);
VALUE uint bitselect(uint, uint, uint);
VALUE uint4 bitselect(uint4, uint4, uint4);

#define ONE(T)                                                                           \
    VALUE T native_exp(T);                                                               \
    VALUE T native_exp2(T);                                                              \
    VALUE T native_recip(T);
WIDTHS(ONE, float)
#undef ONE

#define WIDTH(n)                                                                         \
    VALUE float##n ldexp(float##n, int##n);                                              \
    VALUE int##n isnan(float##n);                                                        \
    VALUE int all(int##n);                                                               \
    VALUE int any(int##n);
WIDTH() WIDTH(2) WIDTH(4) WIDTH(8) WIDTH(16)
#undef WIDTH
#define WIDTH(n)                                                                         \
    VALUE float dot(float##n, float##n);                                                 \
    VALUE float length(float##n);
WIDTH() WIDTH(2) WIDTH(4)
#undef WIDTH

/* ---- conversions ---- */

#define FROM(to, n, convert)                                                             \
    VALUE to convert(char##n);                                                           \
    VALUE to convert(uchar##n);                                                          \
    VALUE to convert(short##n);                                                          \
    VALUE to convert(ushort##n);                                                         \
    VALUE to convert(int##n);                                                            \
    VALUE to convert(uint##n);                                                           \
    VALUE to convert(float##n);

FROM(float, , convert_float)
FROM(float2, 2, convert_float2)
FROM(float4, 4, convert_float4)
FROM(float8, 8, convert_float8)
FROM(float16, 16, convert_float16)
FROM(char, , convert_char_sat_rte)
FROM(int, , convert_int_rte)
FROM(int16, 16, convert_int16_rte)
FROM(long, , convert_long_sat)
FROM(char16, 16, convert_char16)
FROM(uchar16, 16, convert_uchar16)
FROM(short8, 8, convert_short8)
FROM(ushort8, 8, convert_ushort8)
FROM(uint8, 8, convert_uint8)
FROM(ushort16, 16, convert_ushort16)
FROM(int8, 8, convert_int8)
FROM(int16, 16, convert_int16)
FROM(uint16, 16, convert_uint16)
#ifdef cl_khr_fp16
FROM(half, , convert_half_rte)
#endif

/* ---- memory ---- */

#if defined(__opencl_c_generic_address_space)
#define PLACES(M, n, T) M(, n, T)
#else
#define PLACES(M, n, T) M(__global, n, T) M(__local, n, T) M(__private, n, T)
#endif

#define MOVE(place, n, T)                                                                \
    READ T##n vload##n(size_t, const place T *);                                         \
    OVERLOAD void vstore##n(T##n, size_t, place T *);
#define TYPE(n, T) PLACES(MOVE, n, T)
#define WIDTH(n)                                                                         \
    TYPE(n, char) TYPE(n, uchar) TYPE(n, short) TYPE(n, ushort) TYPE(n, int)             \
    TYPE(n, uint) TYPE(n, long) TYPE(n, ulong) TYPE(n, float)
WIDTH(2) WIDTH(4) WIDTH(8) WIDTH(16)
#undef WIDTH
#undef TYPE

#define HALF(place, n, T)                                                                \
    READ float##n vload_half##n(size_t, const place half *);                             \
    OVERLOAD void vstore_half##n(float##n, size_t, place half *);                        \
    OVERLOAD void vstore_half##n##_rte(float##n, size_t, place half *);
#define WIDTH(n) PLACES(HALF, n, )
WIDTH() WIDTH(2) WIDTH(4) WIDTH(8) WIDTH(16)
#undef WIDTH

#define ONE(T) OVERLOAD void prefetch(const __global T *, size_t);
ONE(char) ONE(uchar) ONE(short) ONE(ushort) ONE(int) ONE(uint) ONE(float)
#undef ONE

/* ---- sub-groups ---- */

#define ONE(T)                                                                           \
    CONVERGENT T sub_group_broadcast(T, uint);                                           \
    CONVERGENT T sub_group_reduce_add(T);                                                \
    CONVERGENT T sub_group_reduce_max(T);                                                \
    CONVERGENT T sub_group_reduce_min(T);                                                \
    CONVERGENT T sub_group_scan_exclusive_add(T);                                        \
    CONVERGENT T sub_group_scan_inclusive_add(T);
ONE(int) ONE(uint) ONE(long) ONE(ulong) ONE(float)
#undef ONE

#define ONE(T) CONVERGENT T intel_sub_group_shuffle(T, uint);
WIDTHS(ONE, int)
WIDTHS(ONE, uint)
WIDTHS(ONE, float)
#undef ONE

#define WIDTH(n)                                                                         \
    CONVERGENT uint##n intel_sub_group_block_read##n(const __global uint *);             \
    CONVERGENT void intel_sub_group_block_write##n(__global uint *, uint##n);            \
    CONVERGENT ushort##n intel_sub_group_block_read_us##n(const __global ushort *);      \
    CONVERGENT void intel_sub_group_block_write_us##n(__global ushort *, ushort##n);
WIDTH() WIDTH(2) WIDTH(4) WIDTH(8)
#undef WIDTH

#undef OVERLOAD
#undef VALUE
#undef READ
#undef CONVERGENT
#undef WIDTHS
#undef FROM
#undef PLACES
#undef MOVE
#undef HALF
