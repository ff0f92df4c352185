/* SPDX-License-Identifier: Apache-2.0
 *
 * How properties are printed.
 */
#include "plugin/gpu/gpu_properties.h"

#include <string.h>

#include "plugin/gpu/expert_caches.h"
#include "plugin/property_rows.h"

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

static void
print_memory_bytes(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%llu", (unsigned long long)s->device->global_bytes);
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
    xm_strbuf_add(out, "FP32 BIN EXPORT_IMPORT");
    if (xm_device_has(d, XM_CAP_FP16))
        xm_strbuf_add(out, " FP16");
    if (d->caps & (XM_CAP_DP4A | XM_CAP_DPAS))
        xm_strbuf_add(out, " INT8");
    if (xm_device_has(d, XM_CAP_DPAS))
        xm_strbuf_add(out, " GPU_HW_MATMUL");
    if (xm_device_has(d, XM_CAP_USM_DEVICE))
        xm_strbuf_add(out, " GPU_USM_MEMORY");
}

/* The kinds that OpenVINO knows, in its order. */
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

/* Of all engines that the plugin has on the device. */
static void
print_device_memory(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    struct xm_memory_stats sum;
    xm_open_engines_memory(s->engines, s->engine, &sum);
    print_memory_statistics(&sum, out);
}

/* ---- of the compiled model ---- */

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

static void
print_execution(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%s.%u", s->plugin, s->index);
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

/* The one property that is read from the device, which may fail. */
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

/* ---- the table ---- */

static void print_supported(const struct xm_gpu_subject *s, struct xm_strbuf *out);
static void print_accepted(const struct xm_gpu_subject *s, struct xm_strbuf *out);

static const struct {
    const char *key, *help;
    xm_gpu_print_fn *of_device, *of_compiled; /* NULL: it is not a property of those */
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

static void
print_accepted(const struct xm_gpu_subject *s, struct xm_strbuf *out)
{
    size_t n;
    const struct xm_option_row *options = xm_option_rows(&n);
    (void)s;
    for (size_t i = 0; i < n; i++) {
        if (options[i].list == XM_OPTIONS_ACCEPTED)
            add_word(options[i].name, out);
    }
}

enum xm_status
xm_gpu_property(struct xm_gpu_subject s, const char *key, struct xm_strbuf *out,
                struct xm_error *err)
{
    struct xm_error failed = {0};
    s.err = &failed;
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        xm_gpu_print_fn *print = s.program ? rows[i].of_compiled : rows[i].of_device;
        if (!print || strcmp(key, rows[i].key) != 0)
            continue;
        print(&s, out);
        return failed.status == XM_OK ? XM_OK
                                      : xm_fail(err, failed.status, "%s", failed.text);
    }
    return xm_config_get(s.config, key, out, err);
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
