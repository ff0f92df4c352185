/* SPDX-License-Identifier: Apache-2.0
 *
 * Binds a thread to cores. */
#ifndef XM_RUNTIME_UTIL_CORES_H
#define XM_RUNTIME_UTIL_CORES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Cores [first, first + n) by the system's numbers; n = 0: all cores. */
struct xm_cores {
    uint32_t first, n;
};

/* Whether this thread may run on all cores of `c`. False if the system does not tell. */
bool xm_cores_are_ours(struct xm_cores c);

/* The cores that a thread could run on before xm_cores_enter. */
struct xm_cores_before {
    bool is_bound;
    uint64_t bits[16]; /* one bit for each core 0 to 1023 */
};

/* xm_cores_enter binds the calling thread to the cores `c` until it calls xm_cores_leave. With c.n
 * = 0, or if the system refuses, both do nothing. */
void xm_cores_enter(struct xm_cores c, struct xm_cores_before *before);
void xm_cores_leave(const struct xm_cores_before *before);

#ifdef __cplusplus
}
#endif
#endif
