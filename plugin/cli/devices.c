/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe devices: what there is, and what the tables and rules make of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/json_out.h"

struct args {
    bool json, rules;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    { 0, "rules", XM_CLI_FLAG, AT(rules), NULL, "also which options the config rules set for a MoE model, and why" },
    { 0, "json",  XM_CLI_FLAG, AT(json),  NULL, "the result as one JSON object" },
};
#undef AT
/* clang-format on */

static const char *const kinds[] = {
    [XM_DEVICE_CPU] = "CPU", [XM_DEVICE_GPU] = "GPU", [XM_DEVICE_OTHER] = "other"};

static void
name_of(size_t i, size_t n, char *out, size_t bytes)
{
    if (n > 1)
        snprintf(out, bytes, "GPU.%zu", i);
    else
        snprintf(out, bytes, "GPU");
}

static void
print_device(const struct xm_device_info *d, const char *name)
{
    char caps[512];
    xm_caps_text(d->caps, caps, sizeof(caps));
    printf("%s: %s\n", name, d->name);
    printf("  %s, %s; driver %s; %s\n", kinds[d->kind], d->vendor, d->driver, d->version);
    printf("  architecture %s", xm_arch_text(d->arch));
    if (d->ip_major)
        printf(", IP %u.%u.%u", d->ip_major, d->ip_minor, d->ip_revision);
    printf("%s; %u units at %u MHz%s\n", d->integrated ? ", integrated" : "",
           d->compute_units, d->clock_mhz,
           d->facts_guessed ? "; not in the table of chips: facts are guessed" : "");
    printf("  memory %.1f GiB, largest allocation %.1f GiB, local %" PRIu64
           " KiB, cache %" PRIu64 " KiB\n",
           (double)d->global_bytes / 1073741824.0,
           (double)d->max_alloc_bytes / 1073741824.0, d->local_bytes / 1024,
           d->cache_bytes / 1024);
    if (d->sub_group_sizes[0]) {
        printf("  sub-groups of");
        for (size_t i = 0; i < XM_ARRAY_LEN(d->sub_group_sizes) && d->sub_group_sizes[i];
             i++)
            printf(" %u", d->sub_group_sizes[i]);
        printf("\n");
    }
    printf("  %s\n", caps);
}

/* Which rules fire for a program with a fused MoE and a paged cache. */
static enum xm_status
find_rules(const struct xm_device_info *d, struct xm_strbuf *why, struct xm_error *err)
{
    static const struct xm_program_facts moe = {true, true, true};
    struct xm_config *config = xm_malloc(sizeof(*config));
    if (!config)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for a config");
    xm_config_init(config);
    enum xm_status s = xm_config_finalise(config, d, &moe, why, err);
    xm_free(config);
    return s;
}

static enum xm_status
print_rules(const struct xm_device_info *d, struct xm_error *err)
{
    struct xm_strbuf why = {0};
    enum xm_status s = find_rules(d, &why, err);
    if (s == XM_OK)
        printf("  rules for a MoE model:\n");
    for (char *line = why.text; s == XM_OK && line && *line;) {
        size_t n = strcspn(line, "\n");
        printf("    %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    xm_strbuf_free(&why);
    return s;
}

static enum xm_status
print_text(const struct xm_device_info *d, size_t n, bool rules, struct xm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        char name[32];
        name_of(i, n, name, sizeof(name));
        print_device(&d[i], name);
        if (rules)
            XM_TRY(print_rules(&d[i], err));
    }
    if (n == 0)
        printf("no OpenCL device: install a driver (tools/setup installs PoCL, which "
               "runs on "
               "the CPU)\n");
    printf("REFERENCE: the host reference\n  slow and exact, f32; for comparison\n");
    return XM_OK;
}

static void
add_text(struct xm_json_out *j, yyjson_mut_val *o, const char *key, const char *text)
{
    xm_json_add_text(j, o, key, text, strlen(text));
}

static enum xm_status
add_device(struct xm_json_out *j, yyjson_mut_val *list, const struct xm_device_info *d,
           const char *name, bool rules, struct xm_error *err)
{
    char text[512];
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    add_text(j, o, "device", name);
    add_text(j, o, "name", d->name);
    add_text(j, o, "vendor", d->vendor);
    add_text(j, o, "driver", d->driver);
    add_text(j, o, "version", d->version);
    add_text(j, o, "kind", kinds[d->kind]);
    add_text(j, o, "architecture", xm_arch_text(d->arch));
    snprintf(text, sizeof(text), "%u.%u.%u", d->ip_major, d->ip_minor, d->ip_revision);
    add_text(j, o, "ip", text);
    xm_json_add_bool(j, o, "integrated", d->integrated);
    xm_json_add_whole(j, o, "units", d->compute_units);
    xm_json_add_whole(j, o, "memory", d->global_bytes);
    xm_json_add_whole(j, o, "largest_allocation", d->max_alloc_bytes);
    xm_caps_text(d->caps, text, sizeof(text));
    add_text(j, o, "capabilities", text);
    if (!rules)
        return XM_OK;
    struct xm_strbuf why = {0};
    enum xm_status s = find_rules(d, &why, err);
    xm_json_add_text(j, o, "rules", xm_strbuf_text(&why), why.n);
    xm_strbuf_free(&why);
    return s;
}

static enum xm_status
print_json(const struct xm_device_info *d, size_t n, bool rules, struct xm_error *err)
{
    struct xm_json_out j;
    enum xm_status s = XM_OK;
    xm_json_begin(&j);
    yyjson_mut_val *list = xm_json_add_array(&j, NULL, "devices");
    for (size_t i = 0; i < n && s == XM_OK; i++) {
        char name[32];
        name_of(i, n, name, sizeof(name));
        s = add_device(&j, list, &d[i], name, rules, err);
    }
    yyjson_mut_val *reference = xm_json_add_object(&j, list, NULL);
    add_text(&j, reference, "device", "REFERENCE");
    add_text(&j, reference, "name", "the host reference");
    if (s == XM_OK)
        s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

int
xm_cli_devices(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe devices [--rules] [--json]",
        .about = "Lists the OpenCL devices, best first, and the host reference.\n",
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
    };
    struct args a = {0};
    struct xm_error err = {0};
    const struct xm_device_info *infos = NULL;
    size_t n = 0;
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    enum xm_status s = xm_engine_list(&infos, &n, &err);
    if (s == XM_OK)
        s = a.json ? print_json(infos, n, a.rules, &err)
                   : print_text(infos, n, a.rules, &err);
    return s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}
