/* SPDX-License-Identifier: Apache-2.0
 *
 * Names that OpenVINO gives to several devices at once: "AUTO", "HETERO:GPU.1,CPU", "BATCH:GPU(4)",
 * "AUTO:-CPU".
 */
#ifndef XM_PLUGIN_DEVICE_NAMES_H
#define XM_PLUGIN_DEVICE_NAMES_H

#include <stdbool.h>

#include "plugin/plugin.h"
#include "runtime/util/device_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What such a name promises and nobody keeps, in words behind "it runs on GPU alone: "; NULL:
 * nothing. *bit is its own for each name. */
const char *xm_device_lack(const char *device, uint32_t *bit);

/* Whether each device of the name's list is meant to be there. *bit is its own for each name. */
bool xm_device_needs_all(const char *device, uint32_t *bit);

/* Whether it is BATCH, or BATCH with a list. NULL names no device. */
bool xm_device_is_batch(const char *device);

/* Where a model is to be compiled, and how: "AUTO" with MULTI_DEVICE_PRIORITIES=GPU,CPU means
 * "AUTO:GPU,CPU", and who reads that property of the compiled model finds the list either way. */
struct xm_device_wish {
    const char *device;             /* for xm_core_find; NULL: none was named         */
    struct xm_property *properties; /* the caller's, and room for two more; owned */
    uint32_t n;
    const char *list; /* of the device; NULL or "": it has none */
    char *name;       /* owned; NULL: `device` is the caller's  */
    char index[12];   /* the value of DEVICE_ID */
};
/* *out is for xm_device_wish_free, also on failure. */
enum xm_status xm_device_wish_make(const char *device,
                                   const struct xm_property *properties,
                                   uint32_t n_properties, struct xm_device_wish *out,
                                   struct xm_error *err);
/* For the plugin that it is: adds the property where the name has a list, and DEVICE_ID where it
 * has an index (NULL: it has none), which so counts before what was set for the plain name. */
void xm_device_wish_tell(struct xm_device_wish *w, const struct xm_plugin *p,
                         const uint32_t *index);
void xm_device_wish_free(struct xm_device_wish *w);

#ifdef __cplusplus
}
#endif
#endif
