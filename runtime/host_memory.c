/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/host_memory.h"

#include <stdio.h>

uint64_t
xm_host_memory_free(void)
{
    char line[128];
    unsigned long long kib = 0, sum = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    if (!f)
        return 0;
    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1 ||
            sscanf(line, "SwapFree: %llu", &kib) == 1)
            sum += kib;
    }
    fclose(f);
    return (uint64_t)sum << 10;
}
