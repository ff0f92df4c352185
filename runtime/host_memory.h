/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XM_RUNTIME_HOST_MEMORY_H
#define XM_RUNTIME_HOST_MEMORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that the system could still give to this process: free memory, what it holds in caches,
 * and free swap space; at most what the control groups leave that the process is in, as in a
 * container. 0: it does not say. */
uint64_t xm_host_memory_free(void);
/* Bytes of memory that the system has; 0: it does not say. */
uint64_t xm_host_memory_total(void);
/* The same where /proc and /sys lie below the folder `root`. */
uint64_t xm_host_memory_free_below(const char *root);
uint64_t xm_host_memory_total_below(const char *root);

#ifdef __cplusplus
}
#endif
#endif
