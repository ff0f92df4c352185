/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe devices: lists the devices, their facts, and what tables and rules derive from them.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/devices.h"
#include "plugin/plugin.h"
#include "plugin/program_util/lines.h"

struct args {
    bool json, rules, properties;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("What is shown", "xemoe devices --rules"),
    { 0, "rules", XM_CLI_FLAG, AT(rules), NULL, "also show which options the configuration rules set for a MoE model, and why" },
    { 0, "properties", XM_CLI_FLAG, AT(properties), NULL, "show the properties that programs can read and set instead" },
    { 0, "json",  XM_CLI_FLAG, AT(json),  NULL, "print the result as one JSON object" },
};
#undef AT
/* clang-format on */

const char *
xm_cli_device_kind(const struct xm_device_info *info)
{
    static const char *const kinds[] = {
        [XM_DEVICE_CPU] = "CPU", [XM_DEVICE_GPU] = "GPU", [XM_DEVICE_OTHER] = "other"};
    return kinds[info->kind];
}

void
xm_cli_hex(const uint8_t *bytes, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) {
        /* positions of the dashes in a UUID */
        bool dash = n == 16 && (i == 4 || i == 6 || i == 8 || i == 10);
        out += snprintf(out, 4, "%s%02x", dash ? "-" : "", bytes[i]);
    }
}

/* Finds the config rules that apply to a program with a fused MoE and a paged cache. */
static enum xm_status
find_rules(struct xm_cli_device *d, struct xm_error *err)
{
    static const struct xm_program_facts moe = {.has_moe_3gemm_fused_compressed = true,
                                                .has_moe = true,
                                                .has_paged_attention = true};
    struct xm_strbuf why = {0};
    struct xm_config *config = xm_malloc(sizeof(*config));
    if (!config)
        return xm_no_memory(err, "a config");
    xm_config_init(config);
    enum xm_status s = xm_config_finalise(config, d->info, &moe, &why, err);
    if (s == XM_OK)
        d->rules = xm_strdup(xm_strbuf_text(&why));
    if (s == XM_OK && (!d->rules || !xm_strbuf_ok(&why)))
        s = xm_no_memory(err, "the rules' texts");
    xm_strbuf_free(&why);
    xm_free(config);
    return s;
}

/* Gets the facts of Level Zero; if there are none, copies the reason `why_not`. */
static void
ask_level_zero(struct xm_cli_device *d, const struct xm_ze *ze, const char *why_not)
{
    size_t i = 0;
    if (d->info->kind != XM_DEVICE_GPU)
        why_not = "it is for GPUs";
    else if (ze && !xm_ze_find(ze, d->info, &i))
        why_not = "it does not list this device";
    if (why_not) {
        snprintf(d->why_not_zero, sizeof(d->why_not_zero), "%s", why_not);
        return;
    }
    d->zero = xm_ze_facts_of(ze, i);
    xm_ze_measure(ze, i, &d->telemetry);
}

/* Makes the name that the core gives to a device. */
static void
name_device(const char *plugin, size_t i, size_t n, char name[32])
{
    if (n > 1)
        snprintf(name, 32, "%s.%zu", plugin, i);
    else
        snprintf(name, 32, "%s", plugin);
}

/* Names n devices, best first. */
static void
name_devices(struct xm_cli_device *d, size_t n)
{
    size_t cpu = 0, cpus = 0;
    for (size_t i = 0; i < n; i++)
        cpus += d[i].info->kind == XM_DEVICE_CPU;
    for (size_t i = 0; i < n; i++) {
        name_device("GPU", i, n, d[i].name);
        if (d[i].info->kind == XM_DEVICE_CPU)
            name_device("CPU", cpu++, cpus, d[i].alias);
    }
}

static void
print_text(const struct xm_core *core, const struct xm_cli_device *d, size_t n)
{
    struct xm_lines o = xm_lines_to(stdout);
    for (size_t i = 0; i < n; i++)
        xm_cli_device_text(&d[i]);
    if (n == 0)
        xm_lines_add(&o, "no OpenCL device: " XM_DRIVERS_TO_INSTALL "\n");
    xm_lines_add(
        &o, "REFERENCE: the host reference\n  slow and exact, in f32, for comparison\n");
    xm_cli_devices_of_plugins(core, NULL, NULL);
    xm_lines_end(&o);
}

static enum xm_status
print_json(const struct xm_core *core, const struct xm_cli_device *d, size_t n,
           struct xm_error *err)
{
    struct xm_json_out j;
    xm_json_begin(&j);
    yyjson_mut_val *list = xm_json_add_array(&j, NULL, "devices");
    for (size_t i = 0; i < n; i++)
        xm_cli_device_json(&d[i], &j, list);
    yyjson_mut_val *reference = xm_json_add_object(&j, list, NULL);
    xm_json_add_text(&j, reference, "device", "REFERENCE", strlen("REFERENCE"));
    xm_json_add_text(&j, reference, "name", "the host reference",
                     strlen("the host reference"));
    xm_cli_devices_of_plugins(core, &j, list);
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

/* Finds the OpenCL devices; `d` has room for them. */
static enum xm_status
find_devices(const struct args *a, const struct xm_device_info *infos, size_t n,
             const struct xm_ze *ze, const char *why_not_zero, struct xm_cli_device *d,
             struct xm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        d[i].info = &infos[i];
        xm_planner_room(&infos[i], NULL, &d[i].room);
        if (a->rules)
            XM_TRY(find_rules(&d[i], err));
        ask_level_zero(&d[i], ze, why_not_zero);
    }
    name_devices(d, n);
    return XM_OK;
}

static enum xm_status
print_all(const struct args *a, const struct xm_core *core, struct xm_error *err)
{
    const struct xm_device_info *infos = NULL;
    struct xm_error why_not = {0};
    struct xm_ze *ze = NULL;
    size_t n = 0;
    XM_TRY(xm_engine_list(&infos, &n, err));
    struct xm_cli_device *d = xm_calloc(n + 1, sizeof(*d));
    if (!d)
        return xm_no_memory(err, "the devices");
    xm_ze_open(&ze, &why_not);
    enum xm_status s = find_devices(a, infos, n, ze, ze ? NULL : why_not.text, d, err);
    if (s == XM_OK && a->json)
        s = print_json(core, d, n, err);
    else if (s == XM_OK)
        print_text(core, d, n);
    for (size_t i = 0; i < n; i++)
        xm_free(d[i].rules);
    xm_free(d);
    xm_ze_close(ze);
    return s;
}

static enum xm_status
print_devices(const struct args *a, struct xm_error *err)
{
    struct xm_core *core = NULL;
    XM_TRY(xm_core_create(&core, err));
    enum xm_status s = print_all(a, core, err);
    xm_core_destroy(core);
    return s;
}

int
xm_cli_devices(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe devices [--rules] [--json] [--properties]",
        .about = "Lists the OpenCL devices, best first, with facts from Level Zero "
                 "(memory in use,\npower, frequencies); the host reference; and the "
                 "devices of plugins (XM_PLUGINS).\n",
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
    };
    struct args a = {0};
    struct xm_error err = {0};
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    enum xm_status s =
        a.properties ? xm_cli_print_properties(a.json, &err) : print_devices(&a, &err);
    return s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}
