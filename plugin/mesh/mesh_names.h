/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of meshes: "MESH:GPU.0,GPU.1(0.7,0.3)", or a list alone, "GPU.0,GPU.1". The numbers in
 * parentheses are the devices' shares of the weights, in any unit; without them all have equal
 * ones.
 */
#ifndef XM_PLUGIN_MESH_MESH_NAMES_H
#define XM_PLUGIN_MESH_MESH_NAMES_H

#include <stdbool.h>

#include "runtime/collective.h"
#include "runtime/util/device_list.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_mesh_devices {
    uint32_t n;
    char name[XM_MOST_RANKS][XM_DEVICE_NAME];
    double share[XM_MOST_RANKS];
};

/* The list of a mesh's name; NULL: `device`, which may be NULL, is no such name. */
const char *xm_mesh_list(const char *device);
/* Of `ranks` devices, for all of which one name alone stands; 0: as many as names. Shares are
 * one each. XM_INVALID: fewer than two devices, too many, or another number than that. */
enum xm_status xm_mesh_parse(const char *list, uint32_t ranks,
                             struct xm_mesh_devices *out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
