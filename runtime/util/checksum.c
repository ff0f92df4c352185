/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/checksum.h"

#include <string.h>

enum { LANES = 4, BLOCK = LANES * 8 };

/* One step of FNV-1a. The shift mixes the high bits into the low ones, which a product alone does
 * not do. */
static uint64_t
step(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x100000001b3u;
    return h ^ h >> 32;
}

uint64_t
xm_checksum(const void *bytes, uint64_t n)
{
    const unsigned char *p = bytes;
    uint64_t lane[LANES] = {0xcbf29ce484222325u, 1, 2, 3}, word[LANES];
    uint64_t at = 0, h = n;
    for (; n - at >= BLOCK; at += BLOCK) {
        memcpy(word, p + at, BLOCK);
        for (int i = 0; i < LANES; i++)
            lane[i] = step(lane[i], word[i]);
    }
    for (; at < n; at++)
        lane[0] = step(lane[0], p[at]);
    for (int i = 0; i < LANES; i++)
        h = step(h, lane[i]);
    return h;
}

uint64_t
xm_checksum_samples(const void *data, uint64_t n)
{
    const uint8_t *bytes = data;
    enum { SAMPLES = 64, SAMPLE = 4096 };
    uint64_t sums[SAMPLES];
    if (n <= SAMPLES * SAMPLE)
        return xm_checksum(bytes, n);
    for (uint64_t i = 0; i < SAMPLES; i++)
        sums[i] = xm_checksum(bytes + (n - SAMPLE) / (SAMPLES - 1) * i, SAMPLE);
    sums[SAMPLES - 1] = xm_checksum(bytes + n - SAMPLE, SAMPLE);
    return xm_checksum(sums, sizeof(sums));
}
