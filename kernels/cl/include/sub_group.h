/* SPDX-License-Identifier: Apache-2.0
 *
 * Sub-groups of a required size, as Intel GPUs have them: what the sg kernels share.
 *
 *   SG  16 or 32 lanes; 8 for the matrix engines of some chips
 *
 * A sub-group works alone: no local memory, no barriers, so that a work-group may have any number
 * of them and a sub-group without work simply returns. Only sub-group functions that work with
 * every driver with these extensions are used: block reads of 32-bit words, shuffle, reduce. No
 * sub-group function follows a branch that contains another one, even a uniform branch, unless a
 * loop of them is in between: PoCL 6 duplicates the code behind the branch for lane 0, and the
 * copy exchanges through its own memory.
 *
 * If the device computes in half, half values are converted in registers; else half is a storage
 * format only. Sums are float everywhere.
 */
#include "types.h"

#ifdef cl_intel_subgroups
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#endif
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

#ifndef SG
#define SG 16 /* lanes in a sub-group */
#endif
#if SG != 8 && SG != 16 && SG != 32
#error "SG is 8, 16 or 32"
#endif

#define SUB_GROUP_SIZE __attribute__((intel_reqd_sub_group_size(SG)))

/* Unrolls a loop for GPUs only: compilers for CPUs gain nothing by it, and take several times as
 * long. */
#if defined(__x86_64__) || defined(__aarch64__)
#define UNROLL_ON_GPUS _Pragma("unroll 1")
#else
#define UNROLL_ON_GPUS _Pragma("unroll")
#endif

/* Returns the index of the sub-group along the first dimension. It is broadcast, so that compilers
 * know that it is equal in all lanes: branches and addresses computed from it then cost one
 * register. */
static inline uint
sub_group_index(void)
{
    const uint n = (uint)get_group_id(0) * get_num_sub_groups() + get_sub_group_id();
    return sub_group_broadcast(n, 0);
}

/* Returns the two halves in a word as floats. */
static inline float2
halves(uint word)
{
#ifdef cl_khr_fp16
    return convert_float2(as_half2(word));
#else
    return vload_half2(0, (const half *)&word);
#endif
}

/* Returns two floats as halves in a word. */
static inline uint
two_halves(float low, float high)
{
#ifdef cl_khr_fp16
    return as_uint((half2)(convert_half_rte(low), convert_half_rte(high)));
#else
    uint word;
    vstore_half2_rte((float2)(low, high), 0, (half *)&word);
    return word;
#endif
}

/* Whether an element type is f16, for the preprocessor. */
#define IS_HALF_f16 1
#define IS_HALF_f32 0
#define IS_HALF_i8  0
#define IS_HALF_u4  0
#define IS_HALF(T)  PASTE(IS_HALF_, T)

/* Element i of an aligned array of float type T. */
#define ALIGNED_f16(p, i)  vload_half(i, (__global const half *)(p))
#define ALIGNED_bf16(p, i) as_float((uint)((__global const ushort *)(p))[i] << 16)
#define ALIGNED_f32(p, i)  (((__global const float *)(p))[i])
#define ALIGNED(T, p, i)   PASTE(ALIGNED_, T)(p, i)
