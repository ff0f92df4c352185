/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/selftest.h"
#include "runtime/util/clock.h"

/* Files for the outputs of a process. They have no names, and can have any length. */
struct outputs {
    FILE *out, *said;
};

/* Runs in the new process; does not return. */
static void
become(const char *folder, const char *const *words, const char *setting,
       const struct outputs *to)
{
    char *argv[XM_SELFTEST_WORDS + 1] = {"xemoe"};
    for (size_t i = 0; i < XM_SELFTEST_WORDS - 1 && words[i]; i++)
        argv[i + 1] = (char *)(uintptr_t)words[i];
    const int none = open("/dev/null", O_RDONLY);
    if (none >= 0 && dup2(none, STDIN_FILENO) >= 0 &&
        dup2(fileno(to->out), STDOUT_FILENO) >= 0 &&
        dup2(fileno(to->said), STDERR_FILENO) >= 0 && chdir(folder) == 0 &&
        setenv("XDG_CACHE_HOME", folder, 1) == 0 &&
        (!setting || putenv((char *)(uintptr_t)setting) == 0))
        execv("/proc/self/exe", argv);
    _exit(127);
}

/* Reads a file, at most 64 MiB. */
static bool
read_all(FILE *file, struct xm_strbuf *out)
{
    enum { MOST = 64 << 20 };
    char bytes[4096];
    size_t n;
    rewind(file);
    while (out->n < MOST && (n = fread(bytes, 1, sizeof(bytes), file)) > 0)
        xm_strbuf_add_n(out, bytes, n);
    return !ferror(file) && xm_strbuf_ok(out);
}

/* Returns the beginning of the last line that ends at `end`, without "xemoe: ". */
static const char *
line_before(const char *text, const char *end)
{
    const char *first = end;
    while (first > text && first[-1] != '\n')
        first--;
    return end - first >= 7 && strncmp(first, "xemoe: ", 7) == 0 ? first + 7 : first;
}

/* Appends the last line that is not advice, without its newline. */
static void
last_line(const struct xm_strbuf *text, struct xm_strbuf *out)
{
    const char *all = xm_strbuf_text(text), *end = all + text->n, *first;
    do {
        while (end > all && end[-1] == '\n')
            end--;
        first = line_before(all, end);
        if (!xm_cli_is_advice(first, (size_t)(end - first)))
            break;
        while (end > all && end[-1] != '\n')
            end--;
    } while (end > all);
    xm_strbuf_add_n(out, first, (size_t)(end - first));
}

static void
wait_for(pid_t pid, double limit, struct xm_selftest_child *out)
{
    const double began = xm_now();
    const struct timespec a_while = {.tv_nsec = 20 * 1000 * 1000};
    int status = 0;
    pid_t ended;
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 ||
           (ended < 0 && errno == EINTR)) {
        out->is_late = xm_now() - began > limit;
        if (out->is_late || xm_selftest_is_over())
            kill(pid, SIGKILL);
        nanosleep(&a_while, NULL);
    }
    out->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    out->seconds = xm_now() - began;
}

enum xm_status
xm_selftest_run(const char *folder, const char *const *words, const char *setting,
                double limit, struct xm_selftest_child *out, struct xm_error *err)
{
    const struct outputs to = {tmpfile(), tmpfile()};
    struct xm_strbuf errors = {0};
    enum xm_status s = XM_OK;
    *out = (struct xm_selftest_child){0};
    const pid_t pid = to.out && to.said ? fork() : -1;
    if (pid == 0)
        become(folder, words, setting, &to);
    if (pid < 0) {
        s = xm_fail(err, XM_IO, "no process can be started: %s", strerror(errno));
    } else {
        wait_for(pid, limit, out);
        if (!read_all(to.out, &out->out) || !read_all(to.said, &errors))
            s = xm_fail(err, XM_IO, "the output of '%s' cannot be read", words[0]);
        last_line(&errors, &out->said);
    }
    if (to.out)
        fclose(to.out);
    if (to.said)
        fclose(to.said);
    xm_strbuf_free(&errors);
    return s;
}

void
xm_selftest_child_free(struct xm_selftest_child *c)
{
    xm_strbuf_free(&c->out);
    xm_strbuf_free(&c->said);
}
