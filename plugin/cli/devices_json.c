/* SPDX-License-Identifier: Apache-2.0
 *
 * One device of `xemoe devices --json`. Unknown facts are omitted; missing facts of Level Zero have
 * their reason in "why_not".
 */
#include <stdio.h>
#include <string.h>

#include "plugin/cli/devices.h"

static void
add_text(struct xm_json_out *j, yyjson_mut_val *o, const char *key, const char *text)
{
    xm_json_add_text(j, o, key, text, strlen(text));
}

static void
add_hex(struct xm_json_out *j, yyjson_mut_val *o, const char *key, const uint8_t *bytes,
        size_t n)
{
    char hex[64];
    xm_cli_hex(bytes, n, hex);
    add_text(j, o, key, hex);
}

static void
add_pci(struct xm_json_out *j, yyjson_mut_val *o, const struct xm_pci *p)
{
    char text[48];
    snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", p->domain, p->bus, p->device,
             p->function);
    add_text(j, o, "pci", text);
}

static void
add_units(struct xm_json_out *j, yyjson_mut_val *o, uint32_t slices, uint32_t sub_slices,
          uint32_t eus, uint32_t threads)
{
    xm_json_add_whole(j, o, "slices", slices);
    xm_json_add_whole(j, o, "sub_slices_of_slice", sub_slices);
    xm_json_add_whole(j, o, "eus_of_sub_slice", eus);
    xm_json_add_whole(j, o, "threads_of_eu", threads);
}

static void
add_identity(struct xm_json_out *j, yyjson_mut_val *o, const struct xm_device_info *d)
{
    xm_json_add_whole(j, o, "vendor_id", d->vendor_id);
    xm_json_add_whole(j, o, "device_id", d->device_id);
    if (d->has_pci)
        add_pci(j, o, &d->pci);
    if (d->has_uuid)
        add_hex(j, o, "uuid", d->uuid, sizeof(d->uuid));
    if (d->has_luid)
        add_hex(j, o, "luid", d->luid, sizeof(d->luid));
}

static void
add_telemetry(struct xm_json_out *j, yyjson_mut_val *o, const struct xm_ze_telemetry *t)
{
    yyjson_mut_val *why = xm_json_add_object(j, o, "why_not");
    if (t->why_not_memory[0]) {
        add_text(j, why, "memory_used", t->why_not_memory);
    } else {
        xm_json_add_whole(j, o, "memory_used", t->memory_used);
        xm_json_add_whole(j, o, "memory", t->memory_bytes);
    }
    if (t->why_not_power[0]) {
        add_text(j, why, "watts", t->why_not_power);
    } else {
        xm_json_add_real(j, o, "watts", t->watts);
        if (t->watts_limit > 0)
            xm_json_add_real(j, o, "watts_limit", t->watts_limit);
    }
    if (t->why_not_clocks[0])
        add_text(j, why, "frequencies", t->why_not_clocks);
    yyjson_mut_val *clocks = xm_json_add_array(j, o, "frequencies");
    for (uint32_t i = 0; i < t->n_clocks; i++) {
        yyjson_mut_val *c = xm_json_add_object(j, clocks, NULL);
        add_text(j, c, "domain", t->clock[i].domain);
        xm_json_add_real(j, c, "mhz", t->clock[i].now_mhz);
        xm_json_add_real(j, c, "max_mhz", t->clock[i].max_mhz);
    }
}

static void
add_zero(struct xm_json_out *j, yyjson_mut_val *device, const struct xm_cli_device *d)
{
    yyjson_mut_val *o = xm_json_add_object(j, device, "level_zero");
    const struct xm_ze_facts *f = d->zero;
    xm_json_add_bool(j, o, "available", f != NULL);
    if (!f) {
        add_text(j, o, "why_not", d->why_not_zero);
        return;
    }
    add_text(j, o, "name", f->name);
    xm_json_add_bool(j, o, "integrated", f->integrated);
    add_hex(j, o, "uuid", f->uuid, sizeof(f->uuid));
    if (f->has_pci)
        add_pci(j, o, &f->pci);
    add_units(j, o, f->slices, f->sub_slices, f->eus, f->threads);
    xm_json_add_whole(j, o, "simd_width", f->simd_width);
    xm_json_add_whole(j, o, "clock_mhz", f->clock_mhz);
    xm_json_add_bool(j, o, "fp16", f->fp16);
    xm_json_add_bool(j, o, "fp64", f->fp64);
    xm_json_add_bool(j, o, "int64_atomics", f->int64_atomics);
    xm_json_add_bool(j, o, "dp4a", f->dp4a);
    yyjson_mut_val *memories = xm_json_add_array(j, o, "memories");
    for (uint32_t i = 0; i < f->n_memories; i++) {
        yyjson_mut_val *m = xm_json_add_object(j, memories, NULL);
        add_text(j, m, "name", f->memory[i].name);
        xm_json_add_whole(j, m, "bytes", f->memory[i].bytes);
        xm_json_add_whole(j, m, "clock_mhz", f->memory[i].clock_mhz);
        xm_json_add_whole(j, m, "bus_bits", f->memory[i].bus_bits);
    }
    add_telemetry(j, o, &d->telemetry);
}

void
xm_cli_device_json(const struct xm_cli_device *device, struct xm_json_out *j,
                   yyjson_mut_val *list)
{
    const struct xm_device_info *d = device->info;
    char text[512];
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    add_text(j, o, "device", device->name);
    if (device->alias[0])
        add_text(j, o, "alias", device->alias);
    add_text(j, o, "name", d->name);
    add_text(j, o, "vendor", d->vendor);
    add_text(j, o, "driver", d->driver);
    add_text(j, o, "version", d->version);
    add_text(j, o, "kind", xm_cli_device_kind(d));
    add_text(j, o, "architecture", xm_arch_text(d->arch));
    snprintf(text, sizeof(text), "%u.%u.%u", d->ip_major, d->ip_minor, d->ip_revision);
    add_text(j, o, "ip", text);
    xm_json_add_bool(j, o, "facts_guessed", d->facts_guessed);
    xm_json_add_bool(j, o, "integrated", d->integrated);
    xm_json_add_whole(j, o, "units", d->compute_units);
    xm_json_add_whole(j, o, "clock_mhz", d->clock_mhz);
    if (d->slices)
        add_units(j, o, d->slices, d->sub_slices, d->eus, d->threads);
    xm_json_add_whole(j, o, "memory", d->global_bytes);
    if (device->room.known)
        xm_json_add_whole(j, o, "room", device->room.device);
    xm_json_add_whole(j, o, "largest_allocation", d->max_alloc_bytes);
    xm_json_add_whole(j, o, "local_memory", d->local_bytes);
    xm_json_add_whole(j, o, "cache", d->cache_bytes);
    yyjson_mut_val *sizes = xm_json_add_array(j, o, "sub_groups");
    for (size_t i = 0; i < XM_ARRAY_LEN(d->sub_group_sizes) && d->sub_group_sizes[i]; i++)
        xm_json_add_whole(j, sizes, NULL, d->sub_group_sizes[i]);
    xm_caps_text(d->caps, text, sizeof(text));
    xm_json_add_parts(j, o, "capabilities", text, ", ");
    add_identity(j, o, d);
    add_zero(j, o, device);
    if (device->rules)
        xm_json_add_parts(j, o, "rules", device->rules, "\n");
}
