/* SPDX-License-Identifier: Apache-2.0
 *
 * The device that `list`, `plan` and `info --svg` describe a model for: a device of this computer,
 * or an Intel GPU given by the name of its chip, which need not be present.
 */
#ifndef XM_PLUGIN_CLI_CHIP_H
#define XM_PLUGIN_CLI_CHIP_H

#include <stddef.h>

#include "runtime/engine.h"

/* Options of `list` and `plan`: the device or a chip instead of it, and the context. First member
 * of their structs. */
struct xm_chip_args {
    const char *device, *device_as;
    uint64_t memory;  /* MiB; 0: the device's own    */
    uint64_t context; /* value for xm_cli_context */
};
/* clang-format off */
#define XM_CHIP(member) offsetof(struct xm_chip_args, member)
#define XM_CHIP_DEVICE_ROWS \
    { 'd', "device",    XM_CLI_WORD,  XM_CHIP(device),    "NAME", "GPU (default), GPU.1, CPU; 'xemoe devices' lists them", "-dev", "GPU CPU" }, \
    { 0,   "device-as", XM_CLI_WORD,  XM_CHIP(device_as), "CHIP", "an Intel GPU that need not be in this computer: a chip (mtl_u, dg2, bmg …) or a card (a770, b580, 140v …)", NULL, NULL, xm_cli_add_chips }, \
    { 0,   "memory",    XM_CLI_COUNT, XM_CHIP(memory),    "MIB",  "memory to plan with, instead of the device's own" }
#define XM_CHIP_CONTEXT_ROW \
    { 'c', "context",   XM_CLI_BOUND, XM_CHIP(context),   "N",    "tokens that the KV cache must hold (4096, or the context for which the model was trained if that is smaller); 0: the context for which the model was trained", "ctx-size" }
/* clang-format on */

/* Appends the names of all chips and cards, each followed by a space. */
void xm_cli_add_chips(struct xm_strbuf *out);

/* XM_EXIT_USAGE: a value is out of range, there is no chip of this name, or a device and a chip are
 * given. */
int xm_cli_check_chip(const struct xm_chip_args *a);

/* Facts of the chip `device_as` if that is not NULL (xm_device_imagine), else of the OpenCL device
 * `device` (NULL: the default device). */
enum xm_status xm_cli_find_chip(const char *device, const char *device_as,
                                struct xm_device_info *out, struct xm_error *err);

#endif
