/* SPDX-License-Identifier: Apache-2.0
 *
 * What `xemoe devices` knows of one device, and its two ways to print it.
 */
#ifndef XM_PLUGIN_CLI_DEVICES_H
#define XM_PLUGIN_CLI_DEVICES_H

#include "plugin/program_util/json_out.h"
#include "runtime/levelzero/levelzero.h"

struct xm_cli_device {
    char name[32];  /* "GPU.1"                                 */
    char alias[32]; /* "CPU.1" where it is one; ""              */
    const struct xm_device_info *info;
    const struct xm_ze_facts *zero; /* Level Zero's; NULL: none, see why_not_zero */
    struct xm_ze_telemetry telemetry;
    char why_not_zero[XM_ERROR_TEXT];
    char *rules; /* which config rules fire, lines; NULL: not asked for */
};

const char *xm_cli_device_kind(const struct xm_device_info *info); /* "GPU", static */
/* "86800000-20ff-…" of n bytes into out, which has 3 n + 1. */
void xm_cli_hex(const uint8_t *bytes, size_t n, char *out);

void xm_cli_device_text(const struct xm_cli_device *d);
void xm_cli_device_json(const struct xm_cli_device *d, struct xm_json_out *j,
                        yyjson_mut_val *list);
/* Those of plugins that are libraries of others, as text where `j` is NULL. */
struct xm_core;
void xm_cli_devices_of_plugins(const struct xm_core *core, struct xm_json_out *j,
                               yyjson_mut_val *list);
/* What can be read of devices and compiled models, and what can be set, with defaults. */
enum xm_status xm_cli_print_properties(struct xm_error *err);

#endif
