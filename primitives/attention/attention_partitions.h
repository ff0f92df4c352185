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

/* Partition p has the keys from first_key + p * keys on, the last may have fewer. */
struct xm_attention_partitions {
    uint64_t first_key, keys, n;
};

/* Cuts the keys [first, end), at least one, where a partition is `units` units of work: work-items
 * or work-groups of a kernel, sub-groups of an sg kernel. Pure. */
struct xm_attention_partitions xm_attention_cut_keys(const struct xm_device_info *device,
                                                     uint64_t units, uint64_t first,
                                                     uint64_t end);

#ifdef __cplusplus
}
#endif
#endif
