/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake Level Zero loader with one driver and two GPUs: a discrete one with memory of its own,
 * and an integrated one. The test names the call that fails. After a failed zeInit the loader
 * still hands out devices, and aborts when one is used.
 */
#include <level_zero/ze_api.h>
#include <level_zero/zes_api.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* The test sets the name of the call that fails, and the code that it returns. */
EXPORT char fake_ze_fails[64];
EXPORT ze_result_t fake_ze_code;

enum { DISCRETE = 1, INTEGRATED = 2 };
static ze_result_t initialised = ZE_RESULT_ERROR_UNINITIALIZED;
static uint64_t energy, now;

static ze_result_t
enter(const char *call)
{
    return strcmp(fake_ze_fails, call) == 0 ? fake_ze_code : ZE_RESULT_SUCCESS;
}

#define ENTER(call)                                                                      \
    do {                                                                                 \
        ze_result_t code = enter(call);                                                  \
        if (code != ZE_RESULT_SUCCESS)                                                   \
            return code;                                                                 \
        if (initialised != ZE_RESULT_SUCCESS)                                            \
            abort();                                                                     \
    } while (0)

static void *
handle(uintptr_t n)
{
    return (void *)n;
}

/* Fills *n handles with 1, 2 …. With `handles` NULL it sets *n to `have`. Aborts if more than
 * `have` handles are asked for. */
static void
give(uint32_t have, uint32_t *n, void *handles)
{
    void **out = handles;
    if (!out)
        *n = have;
    if (*n > have)
        abort();
    for (uint32_t i = 0; out && i < *n; i++)
        out[i] = handle(i + 1);
}

EXPORT ze_result_t
zeInit(ze_init_flags_t flags)
{
    (void)flags;
    initialised = enter("zeInit");
    return initialised;
}

EXPORT ze_result_t
zeDriverGet(uint32_t *n, ze_driver_handle_t *drivers)
{
    ENTER("zeDriverGet");
    give(1, n, drivers);
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zeDeviceGet(ze_driver_handle_t driver, uint32_t *n, ze_device_handle_t *devices)
{
    (void)driver;
    ENTER("zeDeviceGet");
    give(2, n, devices);
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zeDeviceGetProperties(ze_device_handle_t device, ze_device_properties_t *p)
{
    ENTER("zeDeviceGetProperties");
    if (p->stype != ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES || p->pNext)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    p->type = ZE_DEVICE_TYPE_GPU;
    p->vendorId = 0x8086;
    p->deviceId = device == handle(DISCRETE) ? 0x4905 : 0x7d55;
    p->flags = device == handle(DISCRETE) ? 0 : ZE_DEVICE_PROPERTY_FLAG_INTEGRATED;
    p->coreClockRate = 2400;
    p->numSlices = 8;
    p->numSubslicesPerSlice = 4;
    p->numEUsPerSubslice = 16;
    p->numThreadsPerEU = 8;
    p->physicalEUSimdWidth = 8;
    memset(p->uuid.id, device == handle(DISCRETE) ? 0xd1 : 0x1d, sizeof(p->uuid.id));
    strncpy(p->name, device == handle(DISCRETE) ? "Fake Discrete" : "Fake Integrated",
            sizeof(p->name) - 1);
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zeDeviceGetModuleProperties(ze_device_handle_t device, ze_device_module_properties_t *p)
{
    (void)device;
    ENTER("zeDeviceGetModuleProperties");
    p->flags = ZE_DEVICE_MODULE_FLAG_FP16 | ZE_DEVICE_MODULE_FLAG_DP4A;
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zeDeviceGetMemoryProperties(ze_device_handle_t device, uint32_t *n,
                            ze_device_memory_properties_t *p)
{
    (void)device;
    ENTER("zeDeviceGetMemoryProperties");
    *n = 1;
    if (!p)
        return ZE_RESULT_SUCCESS;
    p->totalSize = 16ull << 30;
    p->maxClockRate = 2000;
    p->maxBusWidth = 256;
    strncpy(p->name, "GDDR6", sizeof(p->name) - 1);
    return ZE_RESULT_SUCCESS;
}

#ifndef WITHOUT_SYSMAN

EXPORT ze_result_t
zesInit(zes_init_flags_t flags)
{
    (void)flags;
    ENTER("zesInit");
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zesDriverGet(uint32_t *n, zes_driver_handle_t *drivers)
{
    ENTER("zesDriverGet");
    give(1, n, drivers);
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zesDeviceGet(zes_driver_handle_t driver, uint32_t *n, zes_device_handle_t *devices)
{
    (void)driver;
    ENTER("zesDeviceGet");
    give(2, n, devices);
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zesDeviceGetProperties(zes_device_handle_t device, zes_device_properties_t *p)
{
    ENTER("zesDeviceGetProperties");
    return zeDeviceGetProperties((ze_device_handle_t)(void *)device, &p->core);
}

EXPORT ze_result_t
zesDevicePciGetProperties(zes_device_handle_t device, zes_pci_properties_t *p)
{
    ENTER("zesDevicePciGetProperties");
    p->address.bus = device == (void *)handle(DISCRETE) ? 3 : 0;
    p->address.device = device == (void *)handle(DISCRETE) ? 0 : 2;
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zesDeviceEnumMemoryModules(zes_device_handle_t device, uint32_t *n, zes_mem_handle_t *m)
{
    ENTER("zesDeviceEnumMemoryModules");
    give(device == (void *)handle(DISCRETE) ? 2 : 0, n, m);
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zesMemoryGetState(zes_mem_handle_t m, zes_mem_state_t *state)
{
    (void)m;
    ENTER("zesMemoryGetState");
    state->size = 8ull << 30;
    state->free = 6ull << 30;
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zesDeviceEnumPowerDomains(zes_device_handle_t device, uint32_t *n, zes_pwr_handle_t *p)
{
    (void)device;
    ENTER("zesDeviceEnumPowerDomains");
    give(1, n, p);
    return ZE_RESULT_SUCCESS;
}

/* Reports a power of 42 W by counters that do not depend on the clock. */
EXPORT ze_result_t
zesPowerGetEnergyCounter(zes_pwr_handle_t p, zes_power_energy_counter_t *counter)
{
    (void)p;
    ENTER("zesPowerGetEnergyCounter");
    counter->energy = energy += 4200000;
    counter->timestamp = now += 100000;
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zesPowerGetLimits(zes_pwr_handle_t p, zes_power_sustained_limit_t *sustained,
                  zes_power_burst_limit_t *burst, zes_power_peak_limit_t *peak)
{
    (void)p;
    (void)burst;
    (void)peak;
    ENTER("zesPowerGetLimits");
    sustained->enabled = 1;
    sustained->power = 190000;
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zesDeviceEnumFrequencyDomains(zes_device_handle_t device, uint32_t *n,
                              zes_freq_handle_t *f)
{
    ENTER("zesDeviceEnumFrequencyDomains");
    give(device == (void *)handle(DISCRETE) ? 2 : 1, n, f);
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zesFrequencyGetProperties(zes_freq_handle_t f, zes_freq_properties_t *p)
{
    ENTER("zesFrequencyGetProperties");
    p->type = f == handle(1) ? ZES_FREQ_DOMAIN_GPU : ZES_FREQ_DOMAIN_MEMORY;
    p->max = 2400;
    return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t
zesFrequencyGetState(zes_freq_handle_t f, zes_freq_state_t *state)
{
    (void)f;
    ENTER("zesFrequencyGetState");
    state->actual = 600;
    state->request = -1;
    return ZE_RESULT_SUCCESS;
}

#endif
