/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XM_RUNTIME_HOST_MEMORY_H
#define XM_RUNTIME_HOST_MEMORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the bytes that the system can still give to this process: free memory, page cache and
 * free swap, limited by what is left of the limits of the process's control groups (as in a
 * container). 0: unknown. */
uint64_t xm_host_memory_free(void);
/* Returns the system's memory in bytes; 0: unknown. */
uint64_t xm_host_memory_total(void);
/* As xm_host_memory_free and _total, but with /proc and /sys below the folder `root`; for tests. */
uint64_t xm_host_memory_free_below(const char *root);
uint64_t xm_host_memory_total_below(const char *root);

#ifdef __cplusplus
}
#endif
#endif
