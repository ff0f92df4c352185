/* SPDX-License-Identifier: Apache-2.0
 *
 * The user's home folder.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_HOME_H
#define XM_PLUGIN_PROGRAM_UTIL_HOME_H

#ifdef __cplusplus
extern "C" {
#endif

/* Returns HOME, or, if it is not set, as for many services, the folder in the user database. NULL:
 * there is none. The text is valid until HOME changes or the next call. Used by one thread at a
 * time. */
const char *xm_home_folder(void);

#ifdef __cplusplus
}
#endif
#endif
