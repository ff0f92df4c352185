/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe devices: the facts of one device, and printing them as text or JSON.
 */
#ifndef XM_PLUGIN_CLI_DEVICES_H
#define XM_PLUGIN_CLI_DEVICES_H

#include "plugin/memory_planner.h"
#include "plugin/program_util/json_out.h"
#include "runtime/levelzero/levelzero.h"

struct xm_cli_device {
    char name[32];  /* "GPU.1"                                 */
    char alias[32]; /* its second name, "CPU.1"; "": it has none */
    const struct xm_device_info *info;
    struct xm_memory_room room;     /* memory for a model, as 'xemoe plan' counts it */
    const struct xm_ze_facts *zero; /* facts from Level Zero; NULL: see why_not_zero */
    struct xm_ze_telemetry telemetry;
    char why_not_zero[XM_ERROR_TEXT];
    char *rules; /* the config rules that apply, one on each line; NULL: not requested */
};

const char *xm_cli_device_kind(const struct xm_device_info *info); /* "GPU", static */
/* Writes n bytes as "86800000-20ff-…" into out[3 n + 1]. */
void xm_cli_hex(const uint8_t *bytes, size_t n, char *out);

void xm_cli_device_text(const struct xm_cli_device *d);
void xm_cli_device_json(const struct xm_cli_device *d, struct xm_json_out *j,
                        yyjson_mut_val *list);
/* Prints the devices of external plugins (docs/add_a_device.md): as text, or into `list` unless `j`
 * is NULL. */
struct xm_core;
void xm_cli_devices_of_plugins(const struct xm_core *core, struct xm_json_out *j,
                               yyjson_mut_val *list);
/* Prints the properties of devices and compiled models, as text or as one JSON object: readable
 * ones, and settable ones with their defaults. */
enum xm_status xm_cli_print_properties(bool json, struct xm_error *err);

#endif
