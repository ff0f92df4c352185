/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/svg.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/util/new_file.h"

extern char **environ;

/* Starts `dot -Tsvg -o path` with its standard input connected to *write_end. Its error messages
 * are discarded. */
static enum xm_status
start_dot(const char *path, int *write_end, pid_t *pid, struct xm_error *err)
{
    int ends[2];
    char *const argv[] = {"dot", "-Tsvg", "-o", (char *)path, NULL};
    posix_spawn_file_actions_t files;
    if (pipe(ends) != 0)
        return xm_fail(err, XM_IO, "cannot make a pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[0], STDIN_FILENO);
    posix_spawn_file_actions_addclose(&files, ends[1]);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int error = posix_spawnp(pid, "dot", &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    close(ends[0]);
    *write_end = ends[1];
    if (error == 0)
        return XM_OK;
    close(ends[1]);
    return error == ENOENT
               ? xm_fail(err, XM_NOT_FOUND,
                         "the program 'dot' draws the picture and is not installed "
                         "(package graphviz)")
               : xm_fail(err, XM_IO, "cannot start 'dot': %s", strerror(error));
}

/* Writes the whole text. If dot has died, write fails; SIGPIPE does not end this program. */
static bool
feed(int fd, const struct xm_strbuf *text)
{
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    size_t done = 0;
    ssize_t n = 1;
    while (done < text->n && n > 0) {
        n = write(fd, xm_strbuf_text(text) + done, text->n - done);
        done += n > 0 ? (size_t)n : 0;
    }
    signal(SIGPIPE, before);
    return close(fd) == 0 && done == text->n;
}

/* Fails because dot could not draw the file. */
static enum xm_status
fail_to_draw(const char *path, struct xm_error *err)
{
    return xm_fail(err, XM_IO,
                   "'dot' could not draw '%s': it failed, or the disk is full", path);
}

enum xm_status
xm_cli_write_svg(const struct xm_strbuf *dot, const char *path, struct xm_error *err)
{
    struct xm_new_file at;
    int fd = -1, status = 0;
    pid_t pid = 0;
    XM_TRY(xm_new_file_begin(&at, path, err));
    enum xm_status s = start_dot(xm_new_file_name(&at), &fd, &pid, err);
    if (s == XM_OK) {
        const bool fed = feed(fd, dot);
        const bool ended = waitpid(pid, &status, 0) == pid && status == 0;
        s = fed && ended ? XM_OK : fail_to_draw(path, err);
    }
    return xm_new_file_end(&at, s, err);
}
