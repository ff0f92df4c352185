/* SPDX-License-Identifier: Apache-2.0
 *
 * Which cores a thread runs on.
 */
#ifndef XM_RUNTIME_UTIL_CORES_H
#define XM_RUNTIME_UTIL_CORES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Cores [first, first + n) by the system's numbers; n = 0: any. */
struct xm_cores {
    uint32_t first, n;
};

/* Whether this thread may run on all of them. False where the system does not say. */
bool xm_cores_are_ours(struct xm_cores c);

/* What a thread could run on before. */
struct xm_cores_before {
    bool is_bound;
    uint64_t bits[16]; /* of cores 0 to 1023 */
};

/* Until xm_cores_leave, which the same thread calls, it runs on these cores alone. Nothing happens
 * with n = 0 or where the system refuses: then it runs on as it did. */
void xm_cores_enter(struct xm_cores c, struct xm_cores_before *before);
void xm_cores_leave(const struct xm_cores_before *before);

#ifdef __cplusplus
}
#endif
#endif
