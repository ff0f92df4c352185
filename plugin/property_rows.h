/* SPDX-License-Identifier: Apache-2.0
 *
 * The readable properties of OpenCL devices and their compiled models, for lists.
 */
#ifndef XM_PLUGIN_PROPERTY_ROWS_H
#define XM_PLUGIN_PROPERTY_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_property_row {
    const char *key, *help;
    bool of_device, of_compiled;
};
/* Returns property number i; false: there are at most i properties. */
bool xm_gpu_property_row(size_t i, struct xm_property_row *out);

#ifdef __cplusplus
}
#endif
#endif
