/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of meshes: "MESH:GPU.0,GPU.1(0.7,0.3)", or only a list, "GPU.0,GPU.1". The numbers in
 * parentheses are the devices' shares of the weights, in any unit; without them all shares are
 * equal. A device with the share 0 has no part of the model.
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
    double share[XM_MOST_RANKS]; /* >= 0, and one of them above 0 */
};

/* Returns the list of devices in the name of a mesh; NULL: `device`, which may be NULL, is not the
 * name of a mesh. */
const char *xm_mesh_list(const char *device);
/* Parses a list of devices with or without shares; shares that it lacks are 1. `ranks`: the number
 * of devices that the list must have; a list of one name then stands for `ranks` times that device;
 * 0: any number. XM_INVALID: fewer than two devices, too many, or not `ranks` devices. */
enum xm_status xm_mesh_parse(const char *list, uint32_t ranks,
                             struct xm_mesh_devices *out, struct xm_error *err);
/* Removes the devices with the share 0. One device may remain. */
void xm_mesh_leave_out(struct xm_mesh_devices *d);

#ifdef __cplusplus
}
#endif
#endif
