/* SPDX-License-Identifier: Apache-2.0
 *
 * A fast checksum that detects damaged data: FNV-1a over 64-bit words in four independent lanes. It
 * does not protect against deliberate changes. */
#ifndef XM_RUNTIME_UTIL_CHECKSUM_H
#define XM_RUNTIME_UTIL_CHECKSUM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The checksum of n bytes at any alignment. */
uint64_t xm_checksum(const void *bytes, uint64_t n);
/* Returns a checksum of at most 64 blocks of 4096 bytes spread over the data, the first and the
 * last block among them: enough to notice another file, at the cost of reading 64 pages. */
uint64_t xm_checksum_samples(const void *bytes, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
