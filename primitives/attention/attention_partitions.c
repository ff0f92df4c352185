/* SPDX-License-Identifier: Apache-2.0
 *
 * As few partitions as give every compute unit its work, none so short that it takes less time
 * than the launch that joins them.
 */
#include "primitives/attention/attention_partitions.h"

#include "runtime/util/memory.h"

enum {
    KEY_TILE = 32,      /* the kernels' tiles of keys: partitions are whole ones        */
    MAX_PARTITIONS = 64 /* bounds scratch: partitions grow with the context instead     */
};

/* A core takes its units one after the other: two of them even out, and a launch is worth some
 * 128 keys. A unit of a GPU waits for memory most of its time: its EUs hide that by running
 * several, and even 64 keys one after the other take longer than a launch. */
static const struct {
    uint64_t units, least_keys; /* of a compute unit; of a partition */
} on_cpu = {2, 128}, on_gpu = {4, 64};

uint64_t
xm_attention_most_partitions(const struct xm_device_info *device, uint64_t units,
                             uint64_t keys)
{
    bool cpu = device->kind == XM_DEVICE_CPU;
    uint64_t wanted = (cpu ? on_cpu.units : on_gpu.units) * device->compute_units;
    uint64_t most = keys / (cpu ? on_cpu.least_keys : on_gpu.least_keys);
    uint64_t n = (wanted + units - 1) / units;
    if (most > MAX_PARTITIONS)
        most = MAX_PARTITIONS;
    if (n > most)
        n = most;
    return n < 1 ? 1 : n;
}

struct xm_attention_partitions
xm_attention_cut_keys(const struct xm_device_info *device, uint64_t units, uint64_t keys)
{
    uint64_t n = xm_attention_most_partitions(device, units, keys);
    uint64_t of_each = xm_align_up((keys + n - 1) / n, KEY_TILE);
    return (struct xm_attention_partitions){of_each, (keys + of_each - 1) / of_each};
}
