/* SPDX-License-Identifier: Apache-2.0
 *
 * The only place for compiler extensions and language shims.
 */
#ifndef XM_RUNTIME_UTIL_COMPILER_H
#define XM_RUNTIME_UTIL_COMPILER_H

#include <stdbool.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__GNUC__)
#define XM_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define XM_API                __attribute__((visibility("default")))
#else
#define XM_PRINTF(fmt, first)
#define XM_API
#error "reference counts need atomic builtins"
#endif

/* Reference counts in structs that C++ sees, too (it has no _Atomic). xm_refs_drop subtracts one
 * and returns the new count. */
static inline void
xm_refs_add(int *refs)
{
    __atomic_add_fetch(refs, 1, __ATOMIC_RELAXED);
}

static inline int
xm_refs_drop(int *refs)
{
    return __atomic_sub_fetch(refs, 1, __ATOMIC_ACQ_REL);
}

/* A flag that one thread sets and another thread reads; relaxed memory order. */
static inline void
xm_flag_set(bool *flag, bool value)
{
    __atomic_store_n(flag, value, __ATOMIC_RELAXED);
}

static inline bool
xm_flag_get(const bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/* A pointer that is set once, by the thread that comes first. xm_slot_get returns it; NULL: not set
 * yet. xm_slot_fill sets it to `value` unless another thread has set it, and returns the pointer
 * that is set then: the caller frees its `value` if it is not that one. */
static inline void *
xm_slot_get(void **slot)
{
    return __atomic_load_n(slot, __ATOMIC_ACQUIRE);
}

static inline void *
xm_slot_fill(void **slot, void *value)
{
    void *found = (void *)0;
    const bool is_first = __atomic_compare_exchange_n(slot, &found, value, false,
                                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return is_first ? value : found;
}

/* Whether this processor and its system have AVX-512 with 16-bit dot products (VNNI). */
static inline bool
xm_cpu_has_vnni(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

/* Whether this processor and its system have AVX-VNNI: dot products of 16-bit integers and of bytes
 * in vectors of 256 bits. Processors without AVX-512 may have it. */
static inline bool
xm_cpu_has_avx_vnni(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) &&
           (a & 1u << 4);
#else
    return false;
#endif
}

/* Whether the processor has AVX2: products of pairs of 16-bit integers, 16 pairs at a time. */
static inline bool
xm_cpu_has_avx2(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

/* Whether AVX2's is the processor's only instruction that multiplies bytes (its sums of two
 * products have 16 bits), because it has neither AVX-512 nor AVX-VNNI. */
static inline bool
xm_cpu_has_byte_pairs_only(void)
{
#if defined(__x86_64__)
    return xm_cpu_has_avx2() && !__builtin_cpu_supports("avx512bw") &&
           !xm_cpu_has_avx_vnni();
#else
    return false;
#endif
}

/* Whether the processor has AVX512-BF16: products of bf16. Every processor with AMX tiles has
 * it. */
static inline bool
xm_cpu_has_bf16(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

/* Whether the processor has AMX tiles with bf16 products, and the operating system saves the tiles
 * of each thread. On Linux a process must also ask for permission (runtime/ocl/ocl_tiles.c). */
static inline bool
xm_cpu_has_amx(void)
{
#if defined(__x86_64__)
    enum {
        OSXSAVE = 1 << 27,
        AMX_BF16 = 1 << 22,
        AMX_TILE = 1 << 24,
        TILE_STATE = 3 << 17
    };
    unsigned a, b, c, d, states, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE) ||
        !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return false;
    __asm__("xgetbv" : "=a"(states), "=d"(high) : "c"(0));
    return (d & AMX_BF16) && (d & AMX_TILE) && (states & TILE_STATE) == TILE_STATE;
#else
    return false;
#endif
}

/* Whether this is a build with AddressSanitizer or ThreadSanitizer. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define XM_SANITIZER 1
#elif defined(__has_feature)
#define XM_SANITIZER (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define XM_SANITIZER 0
#endif

/* Written before a static function of plain loops: the compiler makes a second version of it for
 * AVX2, and the dynamic loader takes the one that the processor can run. Both compute the same
 * values, because products and sums are not contracted (-ffp-contract=off). Builds with a sanitizer
 * cannot run code that early. */
#if defined(__x86_64__) && defined(__GLIBC__) && !XM_SANITIZER
#define XM_FOR_AVX2_TOO __attribute__((target_clones("avx2", "default")))
#else
#define XM_FOR_AVX2_TOO
#endif

/* The index of the lowest set bit of x; x is not 0. */
static inline int
xm_lowest_bit(uint64_t x)
{
    return __builtin_ctzll(x);
}

#define XM_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
