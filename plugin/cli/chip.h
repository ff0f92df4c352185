/* SPDX-License-Identifier: Apache-2.0
 *
 * The device that something is counted or drawn for: one that is here, or a chip that need not be.
 */
#ifndef XM_PLUGIN_CLI_CHIP_H
#define XM_PLUGIN_CLI_CHIP_H

#include "runtime/engine.h"

/* The device's facts: of the chip `device_as` where that is not NULL (xm_device_imagine), else of
 * the OpenCL device called `device` (NULL: the default one). */
enum xm_status xm_cli_find_chip(const char *device, const char *device_as,
                                struct xm_device_info *out, struct xm_error *err);

#endif
