/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the fewest partitions that keep every compute unit busy, and none so short that it takes
 * less time than the second launch, which combines them.
 */
#include "primitives/attention/attention_partitions.h"

#include "runtime/util/memory.h"

enum {
    /* a partition is whole tiles of so many keys, as kernels read them */
    KEY_TILE = 32,
    /* bounds scratch: with a longer context, partitions get longer */
    MAX_PARTITIONS = 64
};

/* A CPU core runs its units one after another: two a core balance the load, and a launch costs as
 * much time as about 128 keys. A unit on a GPU mostly waits for memory; running several on each
 * compute unit hides that, and even 64 keys one after another take longer than a launch. */
static const struct {
    /* units for each compute unit; least keys of a partition */
    uint64_t units, least_keys;
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
