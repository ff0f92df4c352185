/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the loader, lists the GPUs and reads their facts.
 */
#include "runtime/levelzero/levelzero.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/levelzero/ze.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

const char *
xm_ze_text(ze_result_t code)
{
    /* clang-format off */
    static const struct { ze_result_t code; const char *text; } names[] = {
        {ZE_RESULT_NOT_READY,                        "not ready"},
        {ZE_RESULT_ERROR_DEVICE_LOST,                "device lost"},
        {ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,         "out of host memory"},
        {ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,       "out of device memory"},
        {ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS,   "not permitted"},
        {ZE_RESULT_ERROR_NOT_AVAILABLE,              "not available"},
        {ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE,     "a dependency is missing"},
        {ZE_RESULT_ERROR_UNINITIALIZED,              "no driver, or it is not initialised"},
        {ZE_RESULT_ERROR_UNSUPPORTED_VERSION,        "unsupported version"},
        {ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,        "not supported"},
        {ZE_RESULT_ERROR_UNKNOWN,                    "unknown error"},
    };
    /* clang-format on */
    for (size_t i = 0; i < XM_ARRAY_LEN(names); i++)
        if (names[i].code == code)
            return names[i].text;
    return "error";
}

static enum xm_status
fail(struct xm_error *err, const char *call, ze_result_t code)
{
    return xm_fail(err, XM_UNSUPPORTED, "%s gave 0x%x (%s)", call, (unsigned)code,
                   xm_ze_text(code));
}

/* ---- the loader ---- */

/* Looks up a function; *out stays NULL if the library lacks it. */
static bool
find_symbol(void *library, const char *name, void *out, size_t bytes)
{
    void *symbol = dlsym(library, name);
    if (symbol)
        memcpy(out, &symbol, bytes);
    return symbol != NULL;
}

/* The library to open, from XM_LEVEL_ZERO: "off" means none (NULL), a path that library. Builds
 * with a sanitizer crash in drivers, so they open only a library that is named. */
static const char *
library_name(void)
{
    const char *name = xm_env("XM_LEVEL_ZERO");
    if (!name)
        name = XM_SANITIZER ? "off" : "libze_loader.so.1";
    return strcmp(name, "off") == 0 ? NULL : name;
}

static enum xm_status
open_library(struct xm_ze *ze, struct xm_error *err)
{
    const char *name = library_name(), *missing = NULL;
    if (!name)
        return xm_fail(err, XM_UNSUPPORTED,
                       "it is switched off by XM_LEVEL_ZERO=off, or because this build "
                       "has a sanitizer");
    ze->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!ze->library)
        return xm_fail(err, XM_UNSUPPORTED, "there is no Level Zero loader: %s",
                       dlerror());
#define CORE(f)                                                                          \
    if (!find_symbol(ze->library, "ze" #f, &ze->ze##f, sizeof(ze->ze##f)))               \
        missing = "ze" #f;
#define SYSMAN(f) find_symbol(ze->library, "zes" #f, &ze->zes##f, sizeof(ze->zes##f));
#include "runtime/levelzero/ze_calls.def"
    if (missing)
        return xm_fail(err, XM_UNSUPPORTED, "%s has no function %s", name, missing);
    return XM_OK;
}

/* ---- facts ---- */

static void
copy_text(char *out, size_t n, const char *text, size_t text_max)
{
    size_t len = strnlen(text, text_max < n - 1 ? text_max : n - 1);
    memcpy(out, text, len);
    out[len] = 0;
}

static void
read_memories(const struct xm_ze *ze, struct xm_ze_device *d)
{
    ze_device_memory_properties_t p[XM_ZE_MEMORIES] = {{0}};
    uint32_t n;
    ze_result_t code;
    for (uint32_t i = 0; i < XM_ZE_MEMORIES; i++)
        p[i].stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES;
    XM_ZE_LIST(code, ze->zeDeviceGetMemoryProperties, d->handle, n, p);
    d->facts.n_memories = code == ZE_RESULT_SUCCESS ? n : 0;
    for (uint32_t i = 0; i < d->facts.n_memories; i++) {
        struct xm_ze_memory *m = &d->facts.memory[i];
        copy_text(m->name, sizeof(m->name), p[i].name, sizeof(p[i].name));
        m->bytes = p[i].totalSize;
        m->clock_mhz = p[i].maxClockRate;
        m->bus_bits = p[i].maxBusWidth;
    }
}

static void
read_module(const struct xm_ze *ze, struct xm_ze_device *d)
{
    ze_device_module_properties_t p = {.stype =
                                           ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES};
    if (ze->zeDeviceGetModuleProperties(d->handle, &p) != ZE_RESULT_SUCCESS)
        return;
    d->facts.fp16 = p.flags & ZE_DEVICE_MODULE_FLAG_FP16;
    d->facts.fp64 = p.flags & ZE_DEVICE_MODULE_FLAG_FP64;
    d->facts.int64_atomics = p.flags & ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS;
    d->facts.dp4a = p.flags & ZE_DEVICE_MODULE_FLAG_DP4A;
}

static enum xm_status
read_device(const struct xm_ze *ze, struct xm_ze_device *d, struct xm_error *err)
{
    ze_device_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    ze_result_t code = ze->zeDeviceGetProperties(d->handle, &p);
    if (code != ZE_RESULT_SUCCESS)
        return fail(err, "zeDeviceGetProperties", code);
    struct xm_ze_facts *f = &d->facts;
    copy_text(f->name, sizeof(f->name), p.name, sizeof(p.name));
    memcpy(f->uuid, p.uuid.id, sizeof(f->uuid));
    f->vendor_id = p.vendorId;
    f->device_id = p.deviceId;
    f->integrated = p.flags & ZE_DEVICE_PROPERTY_FLAG_INTEGRATED;
    f->clock_mhz = p.coreClockRate;
    f->slices = p.numSlices;
    f->sub_slices = p.numSubslicesPerSlice;
    f->eus = p.numEUsPerSubslice;
    f->threads = p.numThreadsPerEU;
    f->simd_width = p.physicalEUSimdWidth;
    read_module(ze, d);
    read_memories(ze, d);
    return XM_OK;
}

static enum xm_status
list_devices(struct xm_ze *ze, struct xm_error *err)
{
    ze_driver_handle_t driver[XM_ZE_DRIVERS];
    ze_device_handle_t device[XM_ZE_DEVICES];
    uint32_t n_drivers = 0, n;
    setenv("ZES_ENABLE_SYSMAN", "1", 0); /* see xm_ze_open_sysman */
    ze_result_t code = ze->zeInit(0);
    if (code != ZE_RESULT_SUCCESS)
        return fail(err, "zeInit", code);
    code = ze->zeDriverGet(&n_drivers, NULL);
    if (n_drivers > XM_ZE_DRIVERS)
        n_drivers = XM_ZE_DRIVERS;
    if (code == ZE_RESULT_SUCCESS && n_drivers > 0)
        code = ze->zeDriverGet(&n_drivers, driver);
    if (code != ZE_RESULT_SUCCESS)
        return fail(err, "zeDriverGet", code);
    for (uint32_t i = 0; i < n_drivers; i++) {
        XM_ZE_LIST(code, ze->zeDeviceGet, driver[i], n, device);
        if (code != ZE_RESULT_SUCCESS)
            return fail(err, "zeDeviceGet", code);
        for (uint32_t k = 0; k < n && ze->n < XM_ZE_DEVICES; k++) {
            ze->device[ze->n].handle = device[k];
            XM_TRY(read_device(ze, &ze->device[ze->n], err));
            ze->n++;
        }
    }
    if (ze->n == 0)
        return xm_fail(err, XM_UNSUPPORTED, "Level Zero lists no device");
    return XM_OK;
}

/* ---- public ---- */

enum xm_status
xm_ze_open(struct xm_ze **out, struct xm_error *err)
{
    *out = NULL;
    struct xm_ze *ze = xm_calloc(1, sizeof(*ze));
    if (!ze)
        return xm_no_memory(err, "Level Zero's devices");
    enum xm_status status = open_library(ze, err);
    if (status == XM_OK)
        status = list_devices(ze, err);
    if (status != XM_OK) {
        xm_ze_close(ze);
        return status;
    }
    xm_ze_open_sysman(ze);
    *out = ze;
    return XM_OK;
}

/* The library is not closed, because drivers that it has opened leave threads behind. */
void
xm_ze_close(struct xm_ze *ze)
{
    xm_free(ze);
}

size_t
xm_ze_count(const struct xm_ze *ze)
{
    return ze->n;
}

const struct xm_ze_facts *
xm_ze_facts_of(const struct xm_ze *ze, size_t i)
{
    return &ze->device[i].facts;
}

static bool
same_pci(const struct xm_pci *a, const struct xm_pci *b)
{
    return a->domain == b->domain && a->bus == b->bus && a->device == b->device &&
           a->function == b->function;
}

bool
xm_ze_find(const struct xm_ze *ze, const struct xm_device_info *d, size_t *out)
{
    size_t n = 0;
    if (d->kind != XM_DEVICE_GPU)
        return false;
    for (size_t i = 0; i < ze->n; i++) {
        const struct xm_ze_facts *f = &ze->device[i].facts;
        if ((d->has_uuid && memcmp(d->uuid, f->uuid, sizeof(f->uuid)) == 0) ||
            (d->has_pci && f->has_pci && same_pci(&d->pci, &f->pci))) {
            *out = i;
            return true;
        }
    }
    for (size_t i = 0; i < ze->n; i++) {
        const struct xm_ze_facts *f = &ze->device[i].facts;
        if (d->device_id && f->vendor_id == d->vendor_id &&
            f->device_id == d->device_id) {
            *out = i;
            n++;
        }
    }
    return n == 1;
}
