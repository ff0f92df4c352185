/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/tuner_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plugin/cli/cli.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "runtime/driver_files.h"
#include "runtime/dry_run.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/number.h"

extern char **environ;

/* A kernel that takes longer than this many seconds hangs; so does a build that takes longer than
 * the second number. */
#define MOST_S_ROW   20.0
#define MOST_S_BUILD 300.0
/* Seconds that a process which was told to end may take to finish timing a kernel. */
#define MOST_S_END 5.0
/* Seconds to wait for a killed process: a driver may keep it from ending. */
#define MOST_S_KILLED 1.0

struct xm_cli_tuner {
    pid_t pid;
    int socket;
    bool waits;            /* --tune */
    int keys;              /* terminal on which lines are typed; -1: none */
    bool is_typed;         /* a line was typed: the user is waiting */
    bool is_ready;         /* all kernels are built */
    bool is_over;          /* nothing is left to do, or the process has failed */
    struct xm_strbuf line; /* the incomplete next line */
};

/* ---- whether it is wanted ---------------------------------------------------------------- */

static bool
is_gpu(const struct xm_cli_model *m, const struct xm_cli_target *t)
{
    struct xm_plugin *plugin = NULL;
    uint32_t index = 0;
    return xm_core_find(m->core, t->device, &plugin, &index, NULL) == XM_OK &&
           plugin->ops->info && plugin->ops->info(plugin, index)->kind == XM_DEVICE_GPU;
}

/* Whether XM_TUNED_KERNELS is NO, in any letter case. */
static bool
ignores_choices(void)
{
    const char *value = xm_env("XM_TUNED_KERNELS");
    struct xm_config config;
    xm_config_init(&config);
    return value && xm_config_set(&config, "XM_TUNED_KERNELS", value, NULL) == XM_OK &&
           !config.tuned_kernels;
}

/* Returns why nothing can be measured; NULL: no reason. */
static const char *
obstacle(const char *cache_dir)
{
    const struct {
        bool is_there;
        const char *sentence;
    } obstacles[] = {
        {!cache_dir[0], "there is no cache folder where the choices could be kept"},
        {!xm_driver_files_may_store(), "the cache folder cannot be written"},
        {xm_env("XM_FORCE") != NULL, "XM_FORCE chooses the kernels"},
        {ignores_choices(), "XM_TUNED_KERNELS=NO ignores the choices"},
        {xm_dry_run(), "times of a dry run mean nothing"},
    };
    for (size_t i = 0; i < XM_ARRAY_LEN(obstacles); i++) {
        if (obstacles[i].is_there)
            return obstacles[i].sentence;
    }
    return NULL;
}

static bool
is_wanted(const struct xm_cli_model *m, const struct xm_cli_target *t,
          const char *cache_dir)
{
    if (!t->tunes || t->no_tune)
        return false;
    const char *why_not = obstacle(cache_dir);
    if (why_not && t->tune)
        xm_say("kernels are not measured (--tune): %s", why_not);
    return !why_not && (t->tune || (xm_progress_is_shown() && is_gpu(m, t)));
}

/* ---- the process ------------------------------------------------------------------------- */

/* Returns this process's environment without the variable that it set itself; the texts are not
 * copied. NULL: no memory. */
static char **
environment(void)
{
    static const char own[] = "POCL_CACHE_DIR=";
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **out = xm_calloc(n + 1, sizeof(*out));
    for (size_t i = 0; out && i < n; i++) {
        if (!xm_driver_files_set_folder() ||
            strncmp(environ[i], own, sizeof(own) - 1) != 0)
            out[kept++] = environ[i];
    }
    return out;
}

/* Starts the process in a process group of its own, which Ctrl-C does not reach. */
static int
spawn(const char *path, char **argv, int socket, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    char **variables = environment();
    if (!variables)
        return ENOMEM;
    int code = posix_spawn_file_actions_init(&files);
    if (code == 0 && (code = posix_spawnattr_init(&attributes)) == 0) {
        (void)posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
        (void)posix_spawn_file_actions_adddup2(&files, socket, STDOUT_FILENO);
        (void)posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null",
                                               O_WRONLY, 0);
        (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        code = posix_spawn(pid, path, &files, &attributes, argv, variables);
        (void)posix_spawnattr_destroy(&attributes);
        (void)posix_spawn_file_actions_destroy(&files);
    }
    xm_free(variables);
    return code;
}

static bool
start(struct xm_cli_tuner *t, const char *device, const char *cache_dir)
{
    char *argv[] = {"xemoe",
                    "tune",
                    "--beside",
                    "--device",
                    (char *)(uintptr_t)device,
                    "--cache-dir",
                    (char *)(uintptr_t)cache_dir,
                    NULL};
    struct xm_strbuf path = {0};
    int ends[2] = {-1, -1}, code = ENOENT;
    if (xm_cli_find_program("bench_kernels", &path))
        code = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0
                   ? spawn(xm_strbuf_text(&path), argv, ends[1], &t->pid)
                   : errno;
    if (ends[1] >= 0)
        close(ends[1]);
    t->socket = ends[0];
    xm_strbuf_free(&path);
    if (code != 0)
        xm_log(XM_LOG_INFO, "kernels are not measured: bench_kernels: %s",
               strerror(code));
    return code == 0;
}

static bool
put(struct xm_cli_tuner *t, const char *text)
{
    size_t n = strlen(text);
    while (n > 0) {
        const ssize_t sent = send(t->socket, text, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        text += sent;
        n -= (size_t)sent;
    }
    return true;
}

struct xm_cli_tuner *
xm_cli_tuner_start(const struct xm_cli_model *m, const struct xm_cli_target *target,
                   const char *cache_dir)
{
    struct xm_strbuf steps = {0}, device = {0};
    struct xm_compiled *c = m->compiled;
    struct xm_cli_tuner *t = NULL;
    if (is_wanted(m, target, cache_dir) &&
        c->ops->get_property(c, "XM_UNMEASURED_STEPS", &steps, NULL) == XM_OK &&
        c->ops->get_property(c, "EXECUTION_DEVICES", &device, NULL) == XM_OK &&
        xm_strbuf_ok(&steps) && xm_strbuf_ok(&device) && steps.n > 0)
        t = xm_calloc(1, sizeof(*t));
    if (t) {
        *t = (struct xm_cli_tuner){
            .pid = -1, .socket = -1, .waits = target->tune, .keys = -1};
        xm_strbuf_add(&steps, "\n\n");
        if (!start(t, xm_strbuf_text(&device), cache_dir) || !xm_strbuf_ok(&steps) ||
            !put(t, xm_strbuf_text(&steps))) {
            xm_cli_tuner_end(t);
            t = NULL;
        }
    }
    xm_strbuf_free(&steps);
    xm_strbuf_free(&device);
    return t;
}

/* ---- messages of the process --------------------------------------------------------------- */

static const char failed[] = "failed ";

/* Prints that nothing is measured if the user gave --tune, else logs it for -v. */
static void
tell_failure(const struct xm_cli_tuner *t, const char *why)
{
    xm_progress_clear();
    if (t->waits)
        xm_say("kernels are not measured (--tune): %s", why);
    else
        xm_log(XM_LOG_INFO, "kernels are not measured: %s", why);
}

/* Reads the next line, waiting at most `seconds`. Returns false: no line has arrived, the process
 * has ended or failed, a line was typed, or Ctrl-C was pressed. */
static bool
next_line(struct xm_cli_tuner *t, double seconds, struct xm_strbuf *line)
{
    const double until = xm_now() + seconds;
    xm_strbuf_clear(line);
    for (;;) {
        struct pollfd p[] = {{.fd = t->socket, .events = POLLIN},
                             {.fd = t->keys, .events = POLLIN}};
        const double left = until - xm_now();
        char c;
        if (xm_cli_interrupted())
            return false;
        const int came = poll(p, 2, left > 0.1 ? 100 : left > 0 ? (int)(1e3 * left) : 0);
        t->is_typed = came > 0 && p[1].revents;
        if (t->is_typed)
            xm_progress_clear_typed();
        if (t->is_typed || (came == 0 && left <= 0))
            return false;
        if (came == 0 || (came < 0 && errno == EINTR))
            continue;
        const ssize_t n = came > 0 ? recv(t->socket, &c, 1, 0) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n != 1) {
            t->is_over = true;
            return false;
        }
        if (c != '\n') {
            xm_strbuf_add_n(&t->line, &c, 1);
            continue;
        }
        xm_strbuf_add(line, xm_strbuf_text(&t->line));
        xm_strbuf_clear(&t->line);
        t->is_over = strncmp(xm_strbuf_text(line), failed, sizeof(failed) - 1) == 0;
        if (t->is_over)
            tell_failure(t, xm_strbuf_text(line) + sizeof(failed) - 1);
        return !t->is_over;
    }
}

/* Reads the process's lines while it builds; sets t->is_ready when it has built all kernels. */
static void
follow_builds(struct xm_cli_tuner *t, bool waits, const char *what)
{
    struct xm_strbuf line = {0};
    while (!t->is_ready && next_line(t, waits ? MOST_S_BUILD : 0, &line)) {
        const char *text = xm_strbuf_text(&line);
        t->is_ready = strcmp(text, "ready") == 0;
        if (waits && strncmp(text, "build ", 6) == 0)
            xm_progress_show("%s: building %s", what, text + 6);
    }
    xm_strbuf_free(&line);
}

/* Shows each kernel variant that the tuner process times after one "go", until it reports "left" or
 * "done". Sets t->is_over. Returns whether the process stored a choice for any step. */
static bool
follow_rows(struct xm_cli_tuner *t, const char *what)
{
    struct xm_strbuf line = {0};
    bool has_ended = false;
    size_t kept = 0;
    while (!has_ended && next_line(t, MOST_S_ROW, &line)) {
        const char *text = xm_strbuf_text(&line);
        has_ended = strcmp(text, "left") == 0 || strcmp(text, "done") == 0;
        kept += strncmp(text, "kept ", 5) == 0;
        if (strncmp(text, "row ", 4) == 0)
            xm_progress_show("%s: %s", what, text + 4);
        if (strncmp(text, "wrong ", 6) == 0) {
            xm_progress_clear();
            xm_say("%s", text + 6);
        }
    }
    if (!has_ended && !t->is_over && !t->is_typed && !xm_cli_interrupted())
        xm_log(XM_LOG_INFO, "a kernel that is being measured does not finish");
    xm_progress_clear();
    xm_log(XM_LOG_INFO, "the fastest kernels were found for %zu step%s", kept,
           xm_plural(kept));
    /* a process has one "go"; what is left is measured beside the next start */
    t->is_over = true;
    xm_strbuf_free(&line);
    return kept > 0;
}

bool
xm_cli_tuner_run(struct xm_cli_tuner *t, bool waits, int keys)
{
    const char *what = waits       ? "measuring kernels"
                       : keys >= 0 ? "measuring kernels (Enter or Ctrl-C stops it)"
                                   : "measuring kernels (Ctrl-C stops it)";
    struct pollfd typed = {.fd = keys, .events = POLLIN};
    bool any = false;
    if (!t || t->is_over || poll(&typed, 1, 0) > 0)
        return false;
    t->keys = keys;
    xm_cli_note_interrupt();
    follow_builds(t, waits || t->waits, what);
    if (t->is_ready && !t->is_over && put(t, "go\n"))
        any = follow_rows(t, what);
    xm_progress_clear();
    if (xm_cli_interrupted())
        t->is_over = true;
    xm_cli_release_interrupt();
    return any;
}

/* Ends the process. While it builds, it is not waited for: it ends after the current kernel. While
 * it times a variant, it gets MOST_S_END to finish; then it is killed, and its note on disk keeps
 * that variant from being tried again. */
void
xm_cli_tuner_end(struct xm_cli_tuner *t)
{
    const struct timespec a_while = {.tv_nsec = 5 * 1000 * 1000};
    const double until = xm_now() + MOST_S_END;
    bool is_killed = false;
    pid_t ended = 0;
    if (!t)
        return;
    if (t->socket >= 0)
        close(t->socket);
    while (t->pid > 0 && t->is_ready && ended == 0 && xm_now() < until + MOST_S_KILLED) {
        if (xm_now() > until && !is_killed)
            is_killed = kill(t->pid, SIGKILL) == 0;
        nanosleep(&a_while, NULL);
        ended = waitpid(t->pid, NULL, WNOHANG);
    }
    xm_strbuf_free(&t->line);
    xm_free(t);
}
