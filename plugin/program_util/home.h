/* SPDX-License-Identifier: Apache-2.0
 *
 * The user's home folder.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_HOME_H
#define XM_PLUGIN_PROGRAM_UTIL_HOME_H

#ifdef __cplusplus
extern "C" {
#endif

/* HOME; where that is unset, as for many services, the folder that the user database has. NULL: no
 * such folder. The text is valid until HOME is changed or the next call. One thread at a time. */
const char *xm_home_folder(void);

#ifdef __cplusplus
}
#endif
#endif
