/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that print properties, and the table of properties.
 */
#include "plugin/gpu/gpu_properties.h"

#include <string.h>

#include "plugin/gpu/blob_format.h"
#include "plugin/gpu/unmeasured.h"
#include "plugin/lower/expert_caches.h"
#include "plugin/memory_planner.h"
#include "plugin/property_rows.h"
#include "runtime/host_memory.h"

/* ---- of the device ---- */

static void
print_devices(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        xm_strbuf_printf(out, "%s%u", i ? " " : "", i);
}

static void
print_name(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    xm_strbuf_add(out, s->device->name);
    if (s->device->kind == XM_DEVICE_GPU && !s->program)
        xm_strbuf_add(out, s->device->integrated ? " (iGPU)" : " (dGPU)");
}

static void
print_type(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    bool shares = s->device->integrated || s->device->kind == XM_DEVICE_CPU;
    xm_strbuf_add(out, shares ? "integrated" : "discrete");
}

static void
print_architecture(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    const struct xm_device_info *d = s->device;
    xm_strbuf_printf(out, "%s: vendor=0x%x arch=v%u.%u.%u", s->plugin, d->vendor_id,
                     d->ip_major, d->ip_minor, d->ip_revision);
}

static void
print_pci(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    const struct xm_pci *pci = &s->device->pci;
    xm_strbuf_printf(out, "{domain: %u bus: %u device: 0x%x function: %u}", pci->domain,
                     pci->bus, pci->device, pci->function);
}

static void
print_bytes(const uint8_t *bytes, size_t n, struct xm_strbuf *out)
{
    for (size_t i = 0; i < n; i++)
        xm_strbuf_printf(out, "%02x", bytes[i]);
}

static void
print_uuid(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    print_bytes(s->device->uuid, sizeof(s->device->uuid), out);
}

static void
print_luid(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    print_bytes(s->device->luid, sizeof(s->device->luid), out);
}

static void
print_id(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "0x%04x", s->device->device_id);
}

/* An integrated GPU uses the host's memory, of which drivers may report only a part: so all memory
 * of the host is printed. */
static void
print_memory_bytes(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    const uint64_t host = s->device->integrated ? xm_host_memory_total() : 0;
    xm_strbuf_printf(out, "%llu",
                     (unsigned long long)(host ? host : s->device->global_bytes));
}

static void
print_largest(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%llu", (unsigned long long)s->device->max_alloc_bytes);
}

static void
print_cacheline(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%u", s->device->cacheline_bytes);
}

static void
print_units(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%u", s->device->compute_units);
}

static void
print_version(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    const struct xm_device_info *d = s->device;
    if (d->ip_major)
        xm_strbuf_printf(out, "%u.%u.%u", d->ip_major, d->ip_minor, d->ip_revision);
    else
        xm_strbuf_add(out, "unknown");
}

static void
print_capabilities(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    const struct xm_device_info *d = s->device;
    xm_strbuf_add(out, "FP32 BIN");
    if (xm_device_has(d, XM_CAP_FP16))
        xm_strbuf_add(out, " FP16");
    if (d->caps & (XM_CAP_DP4A | XM_CAP_DPAS))
        xm_strbuf_add(out, " INT8");
    if (xm_device_has(d, XM_CAP_DPAS))
        xm_strbuf_add(out, " GPU_HW_MATMUL");
    if (xm_device_has(d, XM_CAP_USM_DEVICE))
        xm_strbuf_add(out, " GPU_USM_MEMORY");
    xm_strbuf_add(out, " EXPORT_IMPORT");
}

static void
print_driver(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    xm_strbuf_add(out, s->device->driver);
}

/* Prints the peak rates in 10^9 operations a second; a multiply and an add are two operations. A
 * compute unit has 8 lanes of f32, or 16 from Xe2 on, on Xe-HPC and with AVX-512. A lane does four
 * products of bytes. Matrix engines do 8 times as many products of f16 as the lanes do of f32 (16
 * times on Xe-HPC), and twice as many of bytes as of f16. */
static void
print_gops(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    const struct xm_device_info *d = s->device;
    const bool is_wide = d->arch == XM_ARCH_XE_HPC || d->arch >= XM_ARCH_XE2 ||
                         xm_device_has(d, XM_CAP_VNNI);
    const double lanes = is_wide ? 16 : 8, ghz = d->clock_mhz / 1000.0;
    const double f32 = 2 * lanes * d->compute_units * ghz;
    const bool has_bytes = (d->caps & (XM_CAP_DP4A | XM_CAP_BYTE_DOTS)) != 0;
    double f16 = d->kind == XM_DEVICE_GPU && xm_device_has(d, XM_CAP_FP16) ? 2 : 1;
    double i8 = has_bytes ? 4 : 1;
    if (xm_device_has(d, XM_CAP_DPAS)) {
        f16 = d->arch == XM_ARCH_XE_HPC ? 16 : 8;
        i8 = 2 * f16;
    }
    xm_strbuf_printf(out, "{f16:%g,f32:%g,i8:%g,u8:%g}", f16 * f32, f32, i8 * f32,
                     i8 * f32);
}

static void
print_request_range(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    (void)s;
    xm_strbuf_add(out, "1 2 1");
}

static void
print_stream_range(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    (void)s;
    xm_strbuf_add(out, "1 2");
}

/* Appends the identity (device, driver, version) in one line, because programs store it as one
 * string. */
static void
print_identity(const struct xm_device_info *d, struct xm_strbuf *out)
{
    struct xm_strbuf lines = {0};
    xm_blob_identity(d, &lines);
    for (const char *p = xm_strbuf_text(&lines); *p;) {
        const size_t n = strcspn(p, "\n");
        xm_strbuf_printf(out, "%s%.*s", out->n ? "; " : "", (int)n, p);
        p += n + (p[n] == '\n');
    }
    xm_strbuf_free(&lines);
}

static void
print_compatibility(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    struct xm_strbuf own = {0};
    print_identity(s->device, &own);
    const bool same = strcmp(s->config->requirements, xm_strbuf_text(&own)) == 0;
    xm_strbuf_add(out, !s->config->requirements[0] ? "NOT_APPLICABLE"
                       : same                      ? "SUPPORTED"
                                                   : "UNSUPPORTED");
    xm_strbuf_free(&own);
}

/* Prints the bytes of the kinds of memory that OpenVINO knows, in OpenVINO's order. */
static void
print_memory_statistics(const struct xm_memory_stats *m, struct xm_strbuf *out)
{
    xm_strbuf_printf(
        out,
        "{cl_mem_current:%llu,usm_device_current:%llu,usm_host_current:%llu,"
        "usm_shared_current:%llu}",
        (unsigned long long)(m->now[XM_MEMORY_CL] + m->now[XM_MEMORY_CL_HOST]),
        (unsigned long long)m->now[XM_MEMORY_USM_DEVICE],
        (unsigned long long)m->now[XM_MEMORY_USM_HOST],
        (unsigned long long)m->now[XM_MEMORY_USM_SHARED]);
}

/* Prints the memory of all engines that the plugin has opened on the device. */
static void
print_device_memory(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    struct xm_memory_stats sum;
    xm_open_engines_memory(s->engines, s->engine, &sum);
    print_memory_statistics(&sum, out);
}

static void
print_free(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    struct xm_memory_stats in_use;
    struct xm_memory_room room;
    xm_open_engines_memory(s->engines, s->engine, &in_use);
    xm_planner_room(s->device, &in_use, &room);
    xm_strbuf_printf(out, "%llu", (unsigned long long)room.device);
}

/* ---- of the compiled model ---- */

static void
print_requirements(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    print_identity(s->device, out);
}

static void
print_engine_memory(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    struct xm_memory_stats m;
    xm_engine_memory_stats(s->program->engine, &m);
    print_memory_statistics(&m, out);
}

static void
print_model_name(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    xm_strbuf_add(out, s->model_name);
}

/* Prints the device's name as OpenVINO's plugins do: "GPU.0", with a number even for the only GPU;
 * "CPU", without a number for the only processor. */
static void
print_execution(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    xm_strbuf_add(out, s->plugin);
    if (s->n_devices > 1 || strcmp(s->plugin, "CPU") != 0)
        xm_strbuf_printf(out, ".%u", s->index);
}

static void
print_loaded(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    xm_strbuf_add(out, s->program->is_imported ? "YES" : "NO");
}

static void
print_one(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    (void)s;
    xm_strbuf_add(out, "1");
}

/* The counts are read from the device, which may fail: then s->err is set. */
static void
print_expert_cache(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    struct xm_expert_cache_stats c;
    if (xm_expert_caches_stats(s->program, &c, s->err) == XM_OK)
        xm_strbuf_printf(
            out, "{bytes:%llu,slots:%llu,hits:%llu,misses:%llu,fetched_bytes:%llu}",
            (unsigned long long)c.bytes, (unsigned long long)c.slots,
            (unsigned long long)c.hits, (unsigned long long)c.misses,
            (unsigned long long)c.fetched_bytes);
}

static void
print_unmeasured(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    (void)xm_program_unmeasured(s->program, out, s->err);
}

/* ---- the table ---- */

static void print_supported(const struct xm_gpu_subject *s, struct xm_strbuf *out);
static void print_accepted(const struct xm_gpu_subject *s, struct xm_strbuf *out);

static const struct {
    const char *key, *help;
    xm_gpu_print_fn *of_device, *of_compiled; /* NULL: devices, models do not have it */
} rows[] = {
#define PROPERTY(key, of_device, of_compiled, help) {key, help, of_device, of_compiled},
#include "plugin/gpu/gpu_properties.def"
};

static void
add_word(const char *word, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%s%s", out->n ? " " : "", word);
}

static void
print_supported(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    size_t n;
    const struct xm_option_row *options = xm_option_rows(&n);
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        if (s->program ? rows[i].of_compiled : rows[i].of_device)
            add_word(rows[i].key, out);
    }
    for (size_t i = 0; i < n; i++) {
        if (options[i].list != XM_OPTIONS_ACCEPTED)
            add_word(options[i].name, out);
    }
}

/* Returns the function that prints a read-only property; NULL: the device or compiled model has no
 * such property. */
static xm_gpu_print_fn *
find_row(const struct xm_gpu_subject *s, const char *key)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        if (strcmp(key, rows[i].key) == 0)
            return s->program ? rows[i].of_compiled : rows[i].of_device;
    }
    return NULL;
}

static void
print_accepted(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    size_t n;
    const struct xm_option_row *options = xm_option_rows(&n);
    for (size_t i = 0; i < n; i++) {
        if (options[i].list == XM_OPTIONS_ACCEPTED && !find_row(s, options[i].name))
            add_word(options[i].name, out);
    }
}

/* Appends the value of an option. For a device, INFERENCE_PRECISION_HINT is the precision that
 * language models get there if the option is not set. */
static enum xm_status
get_option(const struct xm_gpu_subject *s, const char *key, struct xm_strbuf *out,
           struct xm_error *err)
{
    if (s->program || strcmp(key, "INFERENCE_PRECISION_HINT") != 0)
        return xm_config_get(s->config, key, out, err);
    struct xm_config config = *s->config;
    XM_TRY(xm_config_finalise(&config, s->device, NULL, NULL, err));
    return xm_config_get(&config, key, out, err);
}

enum xm_status
xm_gpu_property(struct xm_gpu_subject s, const char *key, struct xm_strbuf *out,
                struct xm_error *err)
{
    struct xm_error failed = {0};
    xm_gpu_print_fn *print = find_row(&s, key);
    s.err = &failed;
    if (print)
        print(&s, out);
    else
        get_option(&s, key, out, &failed);
    if (failed.status == XM_NOT_FOUND)
        return xm_gpu_unsupported(s.plugin, key, err);
    return failed.status == XM_OK ? XM_OK
                                  : xm_fail(err, failed.status, "%s", failed.text);
}

enum xm_status
xm_gpu_unsupported(const char *plugin, const char *key, struct xm_error *err)
{
    return xm_fail(err, XM_NOT_FOUND, "Unsupported property %s by %s plugin", key,
                   plugin);
}

static bool
is_row(const char *key)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        if (strcmp(key, rows[i].key) == 0)
            return true;
    }
    return false;
}

enum xm_status
xm_gpu_set_option(struct xm_config *c, const char *plugin, const char *key,
                  const char *value, struct xm_error *err)
{
    struct xm_error why = {0};
    const enum xm_status s = xm_config_set(c, key, value, &why);
    if (s == XM_NOT_FOUND && is_row(key))
        return xm_fail(err, XM_INVALID, "property %s of the %s plugin can only be read",
                       key, plugin);
    if (s == XM_NOT_FOUND)
        return xm_gpu_unsupported(plugin, key, err);
    return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
}

bool
xm_gpu_property_row(size_t i, struct xm_property_row *out)
{
    if (i >= XM_ARRAY_LEN(rows))
        return false;
    *out = (struct xm_property_row){.key = rows[i].key,
                                    .help = rows[i].help,
                                    .of_device = rows[i].of_device != NULL,
                                    .of_compiled = rows[i].of_compiled != NULL};
    return true;
}
