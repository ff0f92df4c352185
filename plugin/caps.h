/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations that the kernels for a device can run.
 */
#ifndef XM_PLUGIN_CAPS_H
#define XM_PLUGIN_CAPS_H

#include "runtime/config.h"
#include "runtime/device_info.h"
#include "transformations/pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns what the passes may ask of a device: can_run asks the primitives; the config rules for
 * `program` (NULL: a language model) decide the precision. The arguments must outlive the
 * result. */
struct xm_caps xm_program_caps(const struct xm_device_info *device,
                               const struct xm_config *config,
                               const struct xm_program_facts *program);

#ifdef __cplusplus
}
#endif
#endif
