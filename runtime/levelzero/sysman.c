/* SPDX-License-Identifier: Apache-2.0
 *
 * Telemetry by Sysman. Quantities are independent: one that the driver, the kernel or the user's
 * rights do not give is left out, with the reason.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/levelzero/ze.h"

enum { SAMPLE_NS = 100 * 1000 * 1000 };

static void
set_why(char why[128], const char *call, ze_result_t code)
{
    snprintf(why, 128, "%s gave 0x%x (%s)", call, (unsigned)code, xm_ze_text(code));
}

/* ---- handles ---- */

static void
take_handle(const struct xm_ze *ze, struct xm_ze_device *d, zes_device_handle_t handle)
{
    zes_pci_properties_t pci = {.stype = ZES_STRUCTURE_TYPE_PCI_PROPERTIES};
    d->sysman = handle;
    if (!ze->zesDevicePciGetProperties ||
        ze->zesDevicePciGetProperties(handle, &pci) != ZE_RESULT_SUCCESS)
        return;
    d->facts.has_pci = true;
    d->facts.pci = (struct xm_pci){pci.address.domain, pci.address.bus,
                                   pci.address.device, pci.address.function};
}

/* Gives a Sysman handle to the device with the same UUID. */
static void
match_handle(struct xm_ze *ze, zes_device_handle_t handle)
{
    zes_device_properties_t p = {.stype = ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES,
                                 .core = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES}};
    if (ze->zesDeviceGetProperties(handle, &p) != ZE_RESULT_SUCCESS)
        return;
    for (size_t i = 0; i < ze->n; i++) {
        struct xm_ze_device *d = &ze->device[i];
        if (memcmp(d->facts.uuid, p.core.uuid.id, sizeof(d->facts.uuid)) == 0)
            take_handle(ze, d, handle);
    }
}

static ze_result_t
list_handles(struct xm_ze *ze)
{
    zes_driver_handle_t driver[XM_ZE_DRIVERS];
    zes_device_handle_t device[XM_ZE_DEVICES];
    uint32_t n_drivers = 0, n = 0;
    if (!ze->zesInit || !ze->zesDriverGet || !ze->zesDeviceGet ||
        !ze->zesDeviceGetProperties)
        return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    ze_result_t code = ze->zesInit(0);
    if (code == ZE_RESULT_SUCCESS)
        code = ze->zesDriverGet(&n_drivers, NULL);
    if (n_drivers > XM_ZE_DRIVERS)
        n_drivers = XM_ZE_DRIVERS;
    if (code == ZE_RESULT_SUCCESS && n_drivers > 0)
        code = ze->zesDriverGet(&n_drivers, driver);
    for (uint32_t i = 0; i < n_drivers && code == ZE_RESULT_SUCCESS; i++) {
        XM_ZE_LIST(code, ze->zesDeviceGet, driver[i], n, device);
        for (uint32_t k = 0; k < n && code == ZE_RESULT_SUCCESS; k++)
            match_handle(ze, device[k]);
    }
    return code;
}

/* Older drivers do not have zesInit: if ZES_ENABLE_SYSMAN was set before zeInit, the core's handles
 * serve as Sysman's. */
void
xm_ze_open_sysman(struct xm_ze *ze)
{
    if (list_handles(ze) == ZE_RESULT_SUCCESS)
        return;
    for (size_t i = 0; i < ze->n; i++)
        take_handle(ze, &ze->device[i],
                    (zes_device_handle_t)(void *)ze->device[i].handle);
}

/* ---- quantities ---- */

static void
measure_memory(const struct xm_ze *ze, const struct xm_ze_device *d,
               struct xm_ze_telemetry *t)
{
    zes_mem_handle_t module[XM_ZE_PARTS];
    uint32_t n = 0;
    const char *call = "zesDeviceEnumMemoryModules";
    ze_result_t code = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    if (ze->zesDeviceEnumMemoryModules && ze->zesMemoryGetState)
        XM_ZE_LIST(code, ze->zesDeviceEnumMemoryModules, d->sysman, n, module);
    if (code == ZE_RESULT_SUCCESS && n == 0) {
        snprintf(t->why_not_memory, sizeof(t->why_not_memory),
                 "the device has no memory module of its own");
        return;
    }
    for (uint32_t i = 0; i < n && code == ZE_RESULT_SUCCESS; i++) {
        zes_mem_state_t state = {.stype = ZES_STRUCTURE_TYPE_MEM_STATE};
        call = "zesMemoryGetState";
        code = ze->zesMemoryGetState(module[i], &state);
        if (code != ZE_RESULT_SUCCESS)
            break;
        t->memory_bytes += state.size;
        t->memory_used += state.size > state.free ? state.size - state.free : 0;
    }
    if (code != ZE_RESULT_SUCCESS)
        set_why(t->why_not_memory, call, code);
}

/* Measures power as energy over 100 ms, in the first power domain: the card, or the package. */
static void
measure_power(const struct xm_ze *ze, const struct xm_ze_device *d,
              struct xm_ze_telemetry *t)
{
    zes_pwr_handle_t domain[XM_ZE_PARTS];
    zes_power_energy_counter_t a = {0}, b = {0};
    zes_power_sustained_limit_t limit = {0};
    uint32_t n = 0;
    const struct timespec pause = {0, SAMPLE_NS};
    const char *call = "zesDeviceEnumPowerDomains";
    ze_result_t code = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    if (ze->zesDeviceEnumPowerDomains && ze->zesPowerGetEnergyCounter)
        XM_ZE_LIST(code, ze->zesDeviceEnumPowerDomains, d->sysman, n, domain);
    if (code == ZE_RESULT_SUCCESS && n == 0)
        code = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    if (code == ZE_RESULT_SUCCESS) {
        call = "zesPowerGetEnergyCounter";
        code = ze->zesPowerGetEnergyCounter(domain[0], &a);
    }
    if (code == ZE_RESULT_SUCCESS) {
        nanosleep(&pause, NULL);
        code = ze->zesPowerGetEnergyCounter(domain[0], &b);
    }
    if (code != ZE_RESULT_SUCCESS) {
        set_why(t->why_not_power, call, code);
        return;
    }
    /* in uJ and us, so that the quotient is in W */
    if (b.timestamp > a.timestamp && b.energy >= a.energy)
        t->watts = (double)(b.energy - a.energy) / (double)(b.timestamp - a.timestamp);
    else
        snprintf(t->why_not_power, sizeof(t->why_not_power),
                 "its energy counter does not advance");
    if (ze->zesPowerGetLimits &&
        ze->zesPowerGetLimits(domain[0], &limit, NULL, NULL) == ZE_RESULT_SUCCESS &&
        limit.enabled)
        t->watts_limit = limit.power / 1000.0;
}

static const char *
clock_name(zes_freq_domain_t domain)
{
    switch (domain) {
    case ZES_FREQ_DOMAIN_GPU:
        return "gpu";
    case ZES_FREQ_DOMAIN_MEMORY:
        return "memory";
    case ZES_FREQ_DOMAIN_MEDIA:
        return "media";
    default:
        return "other";
    }
}

static ze_result_t
measure_clock(const struct xm_ze *ze, zes_freq_handle_t domain, struct xm_ze_clock *out)
{
    zes_freq_properties_t p = {.stype = ZES_STRUCTURE_TYPE_FREQ_PROPERTIES};
    zes_freq_state_t state = {.stype = ZES_STRUCTURE_TYPE_FREQ_STATE};
    ze_result_t code = ze->zesFrequencyGetProperties(domain, &p);
    if (code == ZE_RESULT_SUCCESS)
        code = ze->zesFrequencyGetState(domain, &state);
    if (code != ZE_RESULT_SUCCESS)
        return code;
    *out = (struct xm_ze_clock){clock_name(p.type), state.actual > 0 ? state.actual : 0,
                                p.max > 0 ? p.max : 0};
    return code;
}

static void
measure_clocks(const struct xm_ze *ze, const struct xm_ze_device *d,
               struct xm_ze_telemetry *t)
{
    zes_freq_handle_t domain[XM_ZE_CLOCKS];
    uint32_t n = 0;
    const char *call = "zesDeviceEnumFrequencyDomains";
    ze_result_t code = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    if (ze->zesDeviceEnumFrequencyDomains && ze->zesFrequencyGetProperties &&
        ze->zesFrequencyGetState)
        XM_ZE_LIST(code, ze->zesDeviceEnumFrequencyDomains, d->sysman, n, domain);
    for (uint32_t i = 0; i < n && code == ZE_RESULT_SUCCESS; i++) {
        call = "zesFrequencyGetState";
        code = measure_clock(ze, domain[i], &t->clock[t->n_clocks]);
        t->n_clocks += code == ZE_RESULT_SUCCESS;
    }
    if (t->n_clocks == 0)
        set_why(t->why_not_clocks, call, code);
}

void
xm_ze_measure(const struct xm_ze *ze, size_t i, struct xm_ze_telemetry *out)
{
    const struct xm_ze_device *d = &ze->device[i];
    *out = (struct xm_ze_telemetry){0};
    if (d->sysman) {
        measure_memory(ze, d, out);
        measure_power(ze, d, out);
        measure_clocks(ze, d, out);
        return;
    }
    char *const texts[] = {out->why_not_memory, out->why_not_power, out->why_not_clocks};
    for (size_t k = 0; k < XM_ARRAY_LEN(texts); k++)
        snprintf(texts[k], sizeof(out->why_not_memory),
                 "Level Zero Sysman does not list the device");
}

/* A device without UUID and PCI address was made up by a plan or a test: the loader is not opened
 * for it. */
bool
xm_ze_memory_free(const struct xm_device_info *d, uint64_t *bytes)
{
    struct xm_ze_telemetry t = {0};
    struct xm_ze *ze = NULL;
    size_t i = 0;
    if (d->kind != XM_DEVICE_GPU || d->integrated || !(d->has_uuid || d->has_pci) ||
        xm_ze_open(&ze, NULL) != XM_OK)
        return false;
    bool there = xm_ze_find(ze, d, &i) && ze->device[i].sysman;
    if (there)
        measure_memory(ze, &ze->device[i], &t);
    there = there && !t.why_not_memory[0] && t.memory_bytes > 0;
    if (there)
        *bytes = t.memory_bytes - t.memory_used;
    xm_ze_close(ze);
    return there;
}
