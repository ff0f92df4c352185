/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XM_RUNTIME_HOST_MEMORY_H
#define XM_RUNTIME_HOST_MEMORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that the system could still give to this process: free memory, what it holds in caches,
 * and free swap space. 0: it does not say. Limits of a container are not looked at: an answer
 * that is too large costs a warning, one that is too small would refuse what works. */
uint64_t xm_host_memory_free(void);

#ifdef __cplusplus
}
#endif
#endif
