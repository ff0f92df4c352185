/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/folder.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/util/memory.h"

int
xm_folder_make(const char *path)
{
    char part[4096];
    struct stat st;
    const size_t n = strlen(path);
    if (n == 0 || n >= sizeof(part))
        return n ? ENAMETOOLONG : ENOENT;
    for (size_t i = 1; i <= n; i++) {
        if (i < n && path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST && i == n)
            return errno;
    }
    if (stat(path, &st) != 0)
        return errno;
    if (!S_ISDIR(st.st_mode))
        return ENOTDIR;
    return access(path, R_OK | W_OK | X_OK) == 0 ? 0 : errno;
}

enum xm_status
xm_path_absolute(const char *path, char **out, struct xm_error *err)
{
    char absolute[PATH_MAX];
    *out = NULL;
    if (!realpath(path, absolute))
        return xm_fail(err, XM_IO,
                       "the absolute path of '%.300s' cannot be determined: %s", path,
                       strerror(errno));
    *out = xm_strdup(absolute);
    return *out ? XM_OK : xm_no_memory(err, "a path");
}
