/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XM_RUNTIME_UTIL_FOLDER_H
#define XM_RUNTIME_UTIL_FOLDER_H

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the folder and those above it, for their owner alone, where they are not there yet.
 * 0: it is there, and files can be made in it; else errno's number of what is in the way. */
int xm_folder_make(const char *path);

#ifdef __cplusplus
}
#endif
#endif
