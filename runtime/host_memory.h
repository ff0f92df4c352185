/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XM_RUNTIME_HOST_MEMORY_H
#define XM_RUNTIME_HOST_MEMORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that the system can still give to this process: free memory, page cache and free swap, at
 * most the remaining limit of the process's control groups (as in a container). 0: unknown. */
uint64_t xm_host_memory_free(void);
/* Bytes of memory that the system has; 0: unknown. */
uint64_t xm_host_memory_total(void);
/* The same with /proc and /sys below the folder `root`, for tests. */
uint64_t xm_host_memory_free_below(const char *root);
uint64_t xm_host_memory_total_below(const char *root);

#ifdef __cplusplus
}
#endif
#endif
