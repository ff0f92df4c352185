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

/* The plugin of a name of n characters, loaded. XM_NOT_FOUND without a sentence: there is no such
 * name. */
enum xm_status xm_core_plugin(const struct xm_core *c, const char *name, size_t n,
                              struct xm_plugin **out, struct xm_error *err);
/* Says, once, that the plugin of a name cannot be loaded, if so. */
void xm_core_warn_of_broken(const struct xm_core *c, const char *name, size_t n);
/* Whether nobody has asked this of the core for the bit before. */
bool xm_core_is_first(const struct xm_core *c, uint32_t bit);

#ifdef __cplusplus
}
#endif
#endif
