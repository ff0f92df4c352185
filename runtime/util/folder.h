/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XM_RUNTIME_UTIL_FOLDER_H
#define XM_RUNTIME_UTIL_FOLDER_H

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the folder and those above it, for their owner alone, where they are not there yet.
 * 0: it is there, and files can be made in it; else errno's number of what is in the way. */
int xm_folder_make(const char *path);
/* The path from the root on, without links, for xm_free. */
enum xm_status xm_path_absolute(const char *path, char **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
