/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of the plugin registry (core.c) for the search by device name (core_devices.c).
 */
#ifndef XM_PLUGIN_CORE_H
#define XM_PLUGIN_CORE_H

#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the plugin named by the n characters and returns it. XM_NOT_FOUND without a sentence: no
 * plugin has that name. */
enum xm_status xm_core_plugin(const struct xm_core *c, const char *name, size_t n,
                              struct xm_plugin **out, struct xm_error *err);
/* Logs a warning, once, if the plugin of that name cannot be loaded. */
void xm_core_warn_of_broken(const struct xm_core *c, const char *name, size_t n);
/* Returns true the first time that it is called with this bit, so that a warning is logged once. */
bool xm_core_is_first(const struct xm_core *c, uint32_t bit);

#ifdef __cplusplus
}
#endif
#endif
