/* SPDX-License-Identifier: Apache-2.0
 *
 * xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's xorshift generators",
 * 2016): numbers that repeat for the same seed on every machine. Not for secrets.
 */
#ifndef XM_RUNTIME_UTIL_RANDOM_H
#define XM_RUNTIME_UTIL_RANDOM_H

#include <stdint.h>

/* Returns the next 64 random bits. *state is the seed at first; it must not be 0. */
static inline uint64_t
xm_random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

#endif
