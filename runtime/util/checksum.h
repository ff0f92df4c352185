/* SPDX-License-Identifier: Apache-2.0
 *
 * A checksum against damage, at the speed of memory: FNV-1a over words of 64 bits in four lanes.
 * It detects damage, not deliberate changes.
 */
#ifndef XM_RUNTIME_UTIL_CHECKSUM_H
#define XM_RUNTIME_UTIL_CHECKSUM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The checksum of n bytes at any alignment. */
uint64_t xm_checksum(const void *bytes, uint64_t n);
/* A checksum of at most 64 blocks of 4096 bytes spread over the data, the first and the last block
 * among them: enough to notice another file, at the cost of 64 pages. */
uint64_t xm_checksum_samples(const void *bytes, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
