/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XM_RUNTIME_UTIL_FOLDER_H
#define XM_RUNTIME_UTIL_FOLDER_H

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the folder and its missing parents, with mode 0700. Returns 0 when the folder exists and is
 * writable, else the errno of the call that failed. */
int xm_folder_make(const char *path);
/* The absolute path, with symbolic links resolved; free *out with xm_free. */
enum xm_status xm_path_absolute(const char *path, char **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
