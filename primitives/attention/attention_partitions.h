/* SPDX-License-Identifier: Apache-2.0
 *
 * How attention cuts the keys of a few tokens, so that more units of work than their heads run at
 * once. Two partitions or more cost a second launch, which joins them.
 */
#ifndef XM_PRIMITIVES_ATTENTION_ATTENTION_PARTITIONS_H
#define XM_PRIMITIVES_ATTENTION_ATTENTION_PARTITIONS_H

#include <stdint.h>

#include "runtime/device_info.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Partition p has `keys` keys from p * keys on, counted from the first that a sequence sees: the
 * last may have fewer, that of a shorter sequence none. */
struct xm_attention_partitions {
    uint64_t keys, n;
};

/* Cuts `keys` keys, at least one, where a partition is `units` units of work: work-items or
 * work-groups of a kernel, sub-groups of an sg kernel. Pure. */
struct xm_attention_partitions xm_attention_cut_keys(const struct xm_device_info *device,
                                                     uint64_t units, uint64_t keys);
/* How many partitions there are at most of so many keys or fewer. */
uint64_t xm_attention_most_partitions(const struct xm_device_info *device, uint64_t units,
                                      uint64_t keys);

#ifdef __cplusplus
}
#endif
#endif
