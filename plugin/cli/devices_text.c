/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints one device of `xemoe devices` as text.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/devices.h"
#include "plugin/program_util/lines.h"
#include "runtime/util/number.h"

static double
gib(uint64_t bytes)
{
    return (double)bytes / 1073741824.0;
}

static void
print_units(struct xm_lines *o, const struct xm_device_info *d)
{
    xm_lines_add(o, "  architecture %s", xm_arch_text(d->arch));
    if (d->ip_major)
        xm_lines_add(o, ", IP %u.%u.%u", d->ip_major, d->ip_minor, d->ip_revision);
    xm_lines_add(o, "%s; %u unit%s at %u MHz%s\n", d->integrated ? ", integrated" : "",
                 d->compute_units, xm_plural(d->compute_units), d->clock_mhz,
                 d->facts_guessed ? "; unknown chip: its facts are guessed" : "");
    if (d->slices)
        xm_lines_add(o, "  %u slice%s of %u sub-slices of %u EUs of %u threads\n",
                     d->slices, xm_plural(d->slices), d->sub_slices, d->eus, d->threads);
}

static void
print_identity(struct xm_lines *o, const struct xm_device_info *d)
{
    char hex[3 * sizeof(d->uuid) + 1];
    xm_lines_add(o, "  vendor 0x%04x", d->vendor_id);
    if (d->device_id)
        xm_lines_add(o, ", device 0x%04x", d->device_id);
    if (d->has_pci)
        xm_lines_add(o, ", PCI %04x:%02x:%02x.%x", d->pci.domain, d->pci.bus,
                     d->pci.device, d->pci.function);
    if (d->has_uuid) {
        xm_cli_hex(d->uuid, sizeof(d->uuid), hex);
        xm_lines_add(o, ", UUID %s", hex);
    }
    if (d->has_luid) {
        xm_cli_hex(d->luid, sizeof(d->luid), hex);
        xm_lines_add(o, ", LUID %s", hex);
    }
    xm_lines_add(o, "\n");
}

static void
print_telemetry(struct xm_lines *o, const struct xm_ze_telemetry *t)
{
    if (t->why_not_memory[0])
        xm_lines_add(o, "    memory in use: not available: %s\n", t->why_not_memory);
    else
        xm_lines_add(o, "    memory in use: %.1f of %.1f GiB\n", gib(t->memory_used),
                     gib(t->memory_bytes));
    if (t->why_not_power[0])
        xm_lines_add(o, "    power: not available: %s\n", t->why_not_power);
    else if (t->watts_limit > 0)
        xm_lines_add(o, "    power: %.1f W, limit %.0f W\n", t->watts, t->watts_limit);
    else
        xm_lines_add(o, "    power: %.1f W\n", t->watts);
    if (t->why_not_clocks[0])
        xm_lines_add(o, "    frequency: not available: %s\n", t->why_not_clocks);
    for (uint32_t i = 0; i < t->n_clocks; i++)
        xm_lines_add(o, "    frequency of %s: %.0f MHz, at most %.0f\n",
                     t->clock[i].domain, t->clock[i].now_mhz, t->clock[i].max_mhz);
}

static void
print_zero(struct xm_lines *o, const struct xm_cli_device *d)
{
    const struct xm_ze_facts *f = d->zero;
    if (!f) {
        xm_lines_add(o, "  Level Zero: not available: %s\n", d->why_not_zero);
        return;
    }
    xm_lines_add(o, "  Level Zero: %s, %s", f->name,
                 f->integrated ? "integrated" : "discrete");
    if (f->has_pci)
        xm_lines_add(o, ", PCI %04x:%02x:%02x.%x", f->pci.domain, f->pci.bus,
                     f->pci.device, f->pci.function);
    xm_lines_add(o, "; %u EUs of %u threads, SIMD %u", f->slices * f->sub_slices * f->eus,
                 f->threads, f->simd_width);
    if (f->clock_mhz)
        xm_lines_add(o, ", %u MHz", f->clock_mhz);
    xm_lines_add(o, "%s%s%s%s\n", f->fp16 ? "; fp16" : "", f->fp64 ? "; fp64" : "",
                 f->dp4a ? "; DP4A" : "", f->int64_atomics ? "; 64-bit atomics" : "");
    for (uint32_t i = 0; i < f->n_memories; i++) {
        const struct xm_ze_memory *m = &f->memory[i];
        xm_lines_add(o, "    memory %s: %.1f GiB", m->name[0] ? m->name : "of the device",
                     gib(m->bytes));
        if (m->clock_mhz)
            xm_lines_add(o, ", %u MHz", m->clock_mhz);
        if (m->bus_bits)
            xm_lines_add(o, ", %u bits wide", m->bus_bits);
        xm_lines_add(o, "\n");
    }
    print_telemetry(o, &d->telemetry);
}

static void
print_rules(struct xm_lines *o, const char *rules)
{
    xm_lines_add(o, "  configuration rules for a MoE model:\n");
    for (const char *line = rules; *line;) {
        size_t n = strcspn(line, "\n");
        xm_lines_add(o, "    %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

void
xm_cli_device_text(const struct xm_cli_device *device)
{
    struct xm_lines o = xm_lines_to(stdout);
    const struct xm_device_info *d = device->info;
    const struct xm_memory_room *room = &device->room;
    /* A processor's driver may count a part of the machine's memory (memory_planner.h). */
    const bool is_room_larger = room->known && room->device > d->global_bytes;
    char caps[512];
    xm_caps_text(d->caps, caps, sizeof(caps));
    xm_lines_add(&o, "%s: %s\n", device->name, d->name);
    if (device->alias[0])
        xm_lines_add(&o, "  also named %s\n", device->alias);
    xm_lines_add(&o, "  %s, %s; driver %s; %s\n", xm_cli_device_kind(d), d->vendor,
                 d->driver, d->version);
    print_units(&o, d);
    xm_lines_add(&o,
                 "  memory %.1f GiB%s, largest allocation %.1f GiB, local %" PRIu64
                 " KiB, cache %" PRIu64 " KiB\n",
                 gib(d->global_bytes),
                 is_room_larger ? " according to the driver, which is not a limit" : "",
                 gib(d->max_alloc_bytes), d->local_bytes / 1024, d->cache_bytes / 1024);
    if (room->known)
        xm_lines_add(&o, "  free for models %.1f GiB%s\n", gib(room->device),
                     room->host_is_device ? ", shared with the host" : "");
    if (d->sub_group_sizes[0]) {
        xm_lines_add(&o, "  sub-groups of");
        for (size_t i = 0; i < XM_ARRAY_LEN(d->sub_group_sizes) && d->sub_group_sizes[i];
             i++)
            xm_lines_add(&o, " %u", d->sub_group_sizes[i]);
        xm_lines_add(&o, "\n");
    }
    xm_lines_add(&o, "  %s\n", caps);
    print_identity(&o, d);
    print_zero(&o, device);
    if (device->rules)
        print_rules(&o, device->rules);
    xm_lines_end(&o);
}
