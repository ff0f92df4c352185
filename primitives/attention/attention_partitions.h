/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts the keys that a few tokens attend to into partitions, so that more units of work run at once
 * than there are heads. Two or more partitions cost a second launch, which combines their results.
 */
#ifndef XM_PRIMITIVES_ATTENTION_ATTENTION_PARTITIONS_H
#define XM_PRIMITIVES_ATTENTION_ATTENTION_PARTITIONS_H

#include <stdint.h>

#include "runtime/device_info.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Partition p has `keys` keys from key p * keys on, counted from the first key that a sequence
 * attends to. The last partition may have fewer keys; in a shorter sequence it may have none. */
struct xm_attention_partitions {
    uint64_t keys, n;
};

/* Cuts `keys` (at least one) keys, if each partition is `units` units of work: work-items or
 * work-groups of a kernel, sub-groups of an sg kernel. Pure. */
struct xm_attention_partitions xm_attention_cut_keys(const struct xm_device_info *device,
                                                     uint64_t units, uint64_t keys);
/* Returns the most partitions that xm_attention_cut_keys makes of `keys` keys or fewer. */
uint64_t xm_attention_most_partitions(const struct xm_device_info *device, uint64_t units,
                                      uint64_t keys);

#ifdef __cplusplus
}
#endif
#endif
