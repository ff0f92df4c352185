/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts commands that are programs of their own, by replacing this process.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/cli.h"
#include "runtime/driver_files.h"

enum { MOST_PATH = 4096 };

/* Finds the folder of this program, with its last slash. */
static bool
find_own_folder(char folder[MOST_PATH])
{
    const ssize_t n = readlink("/proc/self/exe", folder, MOST_PATH - 1);
    if (n <= 0)
        return false;
    folder[n] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[1] = '\0';
    return slash != NULL;
}

bool
xm_cli_find_program(const char *name, struct xm_strbuf *path)
{
    /* The installed place first, because in a folder of programs another program could have that
     * name. */
    static const char *const places[] = {XM_BIN_TO_LIBEXEC "/", ""};
    char folder[MOST_PATH];
    for (size_t i = 0; i < XM_ARRAY_LEN(places) && find_own_folder(folder); i++) {
        xm_strbuf_clear(path);
        xm_strbuf_printf(path, "%s%s%s", folder, places[i], name);
        if (xm_strbuf_ok(path) && access(xm_strbuf_text(path), F_OK) == 0)
            return true;
    }
    return false;
}

int
xm_cli_start_program(const char *name, char **argv)
{
    struct xm_strbuf path = {0};
    struct xm_error err = {0};
    if (xm_cli_find_program(name, &path)) {
        xm_driver_files_leave();
        execv(xm_strbuf_text(&path), argv);
        xm_fail(&err, XM_IO, "'%.150s' cannot be started: %s", xm_strbuf_text(&path),
                strerror(errno));
    }
    xm_strbuf_free(&path);
    xm_fail(&err, XM_NOT_FOUND,
            "the program %s is neither in '%s' nor beside xemoe: it is not installed",
            name, XM_BIN_TO_LIBEXEC);
    return xm_cli_failed(&err);
}

int
xm_cli_benchmark_app(int argc, char **argv)
{
    (void)argc;
    return xm_cli_start_program("benchmark_app", argv);
}
