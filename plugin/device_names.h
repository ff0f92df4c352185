/* SPDX-License-Identifier: Apache-2.0
 *
 * Device names that stand for several of OpenVINO's devices: "AUTO", "HETERO:GPU.1,CPU",
 * "BATCH:GPU(4)", "AUTO:-CPU".
 */
#ifndef XM_PLUGIN_DEVICE_NAMES_H
#define XM_PLUGIN_DEVICE_NAMES_H

#include <stdbool.h>

#include "plugin/plugin.h"
#include "runtime/util/device_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the feature of such a name that xemoe lacks, to end a warning "device … runs on GPU
 * alone: ", or NULL if it lacks none. *bit is different for each kind of name. */
const char *xm_device_lack(const char *device, uint32_t *bit);

/* Whether a user of this name expects every device of its list to exist, and xemoe uses the first.
 * *bit is different for each kind of name. */
bool xm_device_needs_all(const char *device, uint32_t *bit);

/* Whether the name is "BATCH" or begins with "BATCH:"; `device` may be NULL. */
bool xm_device_is_batch(const char *device);

/* A device name and properties for compiling, in one form: "AUTO" with the property
 * MULTI_DEVICE_PRIORITIES=GPU,CPU and "AUTO:GPU,CPU" become the same, and the compiled model has
 * that property in both cases. */
struct xm_device_wish {
    const char *device; /* for xm_core_find; NULL: no device was named */
    /* owned; the caller's properties, with room for two more */
    struct xm_property *properties;
    uint32_t n;
    const char *list; /* the device list after the colon; NULL or "": none */
    char *name;       /* owned memory of `device`; NULL: `device` is the caller's text */
    char index[12];   /* memory for the value of DEVICE_ID */
};
/* The caller frees *out with xm_device_wish_free, also on failure. */
enum xm_status xm_device_wish_make(const char *device,
                                   const struct xm_property *properties,
                                   uint32_t n_properties, struct xm_device_wish *out,
                                   struct xm_error *err);
/* For an OpenCL plugin `p`: adds MULTI_DEVICE_PRIORITIES if the name has a list and the property is
 * not set, and DEVICE_ID if `index` is not NULL; this overrides a DEVICE_ID set on the core. For
 * other plugins: removes MULTI_DEVICE_PRIORITIES if the name is one that can have a list, because
 * they need not know the property. */
void xm_device_wish_tell(struct xm_device_wish *w, const struct xm_plugin *p,
                         const uint32_t *index);
void xm_device_wish_free(struct xm_device_wish *w);

#ifdef __cplusplus
}
#endif
#endif
