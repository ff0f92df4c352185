/* SPDX-License-Identifier: Apache-2.0
 *
 * Sub-groups of a required size, as Intel GPUs have them: what the sg kernels share.
 *
 *   SG  16 or 32 lanes; 8 for the matrix engines of some chips
 *
 * A sub-group works alone: no local memory, no barriers, so that a work-group may hold any number
 * of them and a sub-group without work simply returns. Only functions that every driver with
 * these extensions gets right are used: block reads of 32-bit words, shuffle, reduce. None stands
 * behind a branch around another, uniform as it may be, with no loop of them in between: PoCL 6
 * copies what follows the branch for lane 0, and the copy exchanges through memory of its own.
 *
 * Where the device computes in half, half values are converted in registers; elsewhere they are
 * loaded as a storage format. Sums are float everywhere.
 */
#include "types.h"

#ifdef cl_intel_subgroups
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#endif
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

#ifndef SG
#define SG 16 /* lanes of a sub-group */
#endif
#if SG != 8 && SG != 16 && SG != 32
#error "SG is 8, 16 or 32"
#endif

#define SUB_GROUP_SIZE __attribute__((intel_reqd_sub_group_size(SG)))

/* Loops that are unrolled for GPUs alone. Processors' compilers gain nothing by it, and take
 * several times as long. */
#if defined(__x86_64__) || defined(__aarch64__)
#define UNROLL_ON_GPUS _Pragma("unroll 1")
#else
#define UNROLL_ON_GPUS _Pragma("unroll")
#endif

/* Number of the sub-group along the first dimension. Broadcast, so that compilers know that it is
 * the same for all lanes: branches and addresses that follow from it cost one register. */
static inline uint
sub_group_index(void)
{
    const uint n = (uint)get_group_id(0) * get_num_sub_groups() + get_sub_group_id();
    return sub_group_broadcast(n, 0);
}

/* Two halves in a word. */
static inline float2
halves(uint word)
{
#ifdef cl_khr_fp16
    return convert_float2(as_half2(word));
#else
    return vload_half2(0, (const half *)&word);
#endif
}

/* Two floats as halves in a word. */
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

/* Whether an element type is half, for the preprocessor. */
#define IS_HALF_f16 1
#define IS_HALF_f32 0
#define IS_HALF_i8  0
#define IS_HALF_u4  0
#define IS_HALF(T)  PASTE(IS_HALF_, T)

/* Element i of an array of floats of type T that is aligned. */
#define ALIGNED_f16(p, i)  vload_half(i, (__global const half *)(p))
#define ALIGNED_bf16(p, i) as_float((uint)((__global const ushort *)(p))[i] << 16)
#define ALIGNED_f32(p, i)  (((__global const float *)(p))[i])
#define ALIGNED(T, p, i)   PASTE(ALIGNED_, T)(p, i)
