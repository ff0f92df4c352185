/* SPDX-License-Identifier: Apache-2.0
 *
 * A signal may be handled in any thread that does not block it, while the main thread continues.
 * Therefore handlers share only lock-free atomics with it, and are counted: a function that takes
 * an object away from handlers waits until no running handler can still use it.
 */
#include "plugin/program_util/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "plugin/program_util/exit_codes.h"
#include "plugin/program_util/progress.h"
#include "plugin/program_util/terminal.h"
#include "runtime/util/compiler.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/unfinished.h"

enum mode { LEAVE, CANCEL, NOTE };

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_POINTER_LOCK_FREE == 2,
               "handlers may use atomics only where these need no lock");

static atomic_int mode = LEAVE;
static atomic_bool interrupted, line_open;
static _Atomic(void *) running;
static _Atomic(const struct xm_interruptible *) running_ops; /* set before `running` */
static _Atomic(const char *) farewell;
static atomic_int farewell_fd;
static atomic_int handling; /* number of running handlers in all threads */
/* Written before handlers are installed. */
static struct termios at_start;
static bool has_modes, errors_on_terminal, text_on_terminal;
static int wake[2] = {-1, -1};

enum { MOST_WAKERS = 4 };
static struct {
    atomic_int signal_number; /* 0: the entry is free */
    _Atomic(bool *) came;
    struct sigaction before;
} wakers[MOST_WAKERS];

/* Signals that end the process: the handler cleans up, then raises the signal again, so that the
 * parent process sees it. */
static const struct {
    int number;
    const char *sentence; /* NULL: no sentence, because nobody would read it */
} endings[] = {
    {SIGTERM, "xemoe: stopped by a signal to terminate\n"},
    {SIGHUP, "xemoe: stopped: the terminal was closed\n"},
    {SIGQUIT, "xemoe: stopped by Ctrl-\\\n"},
    {SIGPIPE, NULL},
    {SIGXCPU, "xemoe: stopped at the limit of processor time\n"},
    {SIGXFSZ, "xemoe: stopped at the limit of a file's size\n"},
};

/* ---- code for handlers: only functions that POSIX allows there ----------------------------- */

static void
say(int fd, const char *text)
{
    size_t n = 0;
    while (text[n])
        n++;
    if (write(fd, text, n) < 0)
        return; /* there is no other way to report it */
}

/* Ends lines that are incomplete on the terminal: text, a progress line, or "^C". */
static void
end_open_lines(void)
{
    if (xm_progress_stands())
        say(STDERR_FILENO, XM_PROGRESS_WIPE);
    if (line_open)
        say(STDOUT_FILENO, "\n");
    else if (errors_on_terminal && !xm_progress_stands())
        say(STDERR_FILENO, "\n");
    if (line_open && errors_on_terminal && !text_on_terminal && !xm_progress_stands())
        say(STDERR_FILENO, "\n");
}

static void
give_terminal_back(void)
{
    const char *codes = farewell;
    if (codes)
        say(farewell_fd, codes);
    /* only in the foreground */
    if (codes && has_modes && tcgetpgrp(STDIN_FILENO) == getpgrp())
        tcsetattr(STDIN_FILENO, TCSANOW, &at_start);
    end_open_lines();
}

static void
leave(void)
{
    xm_unfinished_remove();
    give_terminal_back();
    say(STDERR_FILENO, "xemoe: stopped by Ctrl-C\n");
    _exit(XM_EXIT_CANCELLED);
}

/* Cleans up and raises the signal again; it is blocked until the handler returns. */
static void
on_ending(int signal_number)
{
    xm_unfinished_remove();
    signal(signal_number, SIG_DFL);
    for (size_t i = 0; i < XM_ARRAY_LEN(endings); i++) {
        if (endings[i].number != signal_number || !endings[i].sentence)
            continue;
        give_terminal_back();
        say(STDERR_FILENO, endings[i].sentence);
    }
    raise(signal_number);
}

static void
say_number(int fd, uint64_t n)
{
    char digits[21];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    do
        digits[--at] = (char)('0' + n % 10);
    while (n /= 10);
    say(fd, digits + at);
}

/* Ends the process because a mapped file cannot be read. Several threads that read the same weights
 * may arrive here; only the first prints the sentence. */
static void
leave_without_file(const char *path, uint64_t n_bytes)
{
    static atomic_flag has_spoken = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&has_spoken))
        pause();
    xm_unfinished_remove();
    give_terminal_back();
    say(STDERR_FILENO, "xemoe: file '");
    say(STDERR_FILENO, path);
    say(STDERR_FILENO, "' was truncated or can no longer be read (");
    say_number(STDERR_FILENO, n_bytes);
    say(STDERR_FILENO, " bytes are mapped)\n");
    _exit(XM_EXIT_FILE);
}

static void
wake_up(void)
{
    int saved = errno;
    if (write(wake[1], "", 1) < 0)
        errno = saved; /* the pipe is full, so it is readable already */
}

static void
on_interrupt(int signal_number)
{
    (void)signal_number;
    const int now = mode;
    if (now == LEAVE || (now == CANCEL && interrupted)) {
        leave();
        return;
    }
    handling++;
    interrupted = true;
    void *run = running;
    const struct xm_interruptible *ops = running_ops;
    if (run)
        ops->cancel(run);
    else
        wake_up();
    handling--;
}

static void
on_waker(int signal_number)
{
    handling++;
    for (int i = 0; i < MOST_WAKERS; i++) {
        if (wakers[i].signal_number == signal_number)
            xm_flag_set(wakers[i].came, true);
    }
    wake_up();
    handling--;
}

/* ---- code outside of handlers -------------------------------------------------------------- */

/* Waits for the end of all running handlers. Later handlers do not find objects that were removed
 * before the call. A handler in this thread has ended already. */
static void
wait_for_handlers(void)
{
    while (handling)
        sched_yield();
}

/* Installs a handler, unless the program was started with the signal ignored ("xemoe … &" in a
 * script). */
static bool
handle(int signal_number, void (*handler)(int), struct sigaction *before)
{
    struct sigaction action;
    if (sigaction(signal_number, NULL, before) != 0 || before->sa_handler == SIG_IGN)
        return false;
    memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    action.sa_flags = (int)SA_RESTART;
    return sigaction(signal_number, &action, NULL) == 0;
}

static void
open_wake(void)
{
    if (wake[0] >= 0 || pipe(wake) != 0)
        return;
    for (int i = 0; i < 2; i++) {
        fcntl(wake[i], F_SETFL, O_NONBLOCK);
        fcntl(wake[i], F_SETFD, FD_CLOEXEC);
    }
}

void
xm_cli_watch_interrupt(void)
{
    errors_on_terminal = xm_terminal_is(STDERR_FILENO);
    text_on_terminal = xm_terminal_is(STDOUT_FILENO);
    has_modes = tcgetattr(STDIN_FILENO, &at_start) == 0;
    open_wake();
    struct sigaction before;
    handle(SIGINT, on_interrupt, &before);
    for (size_t i = 0; i < XM_ARRAY_LEN(endings); i++)
        handle(endings[i].number, on_ending, &before);
    /* otherwise the process would die of SIGBUS without a sentence */
    xm_mapped_file_watch(leave_without_file, NULL);
}

/* A remembered Ctrl-C cancels this run, because no other code will check it. */
void
xm_cli_catch_run(void *run, const struct xm_interruptible *ops)
{
    ops->resume(run);
    running_ops = ops;
    running = run;
    mode = CANCEL;
    if (interrupted)
        ops->cancel(run);
}

void
xm_cli_release_interrupt(void)
{
    mode = LEAVE;
    running = NULL;
    wait_for_handlers();
}

void
xm_cli_note_interrupt(void)
{
    running = NULL; /* first, so that a Ctrl-C from now on does not cancel the run */
    mode = NOTE;
    wait_for_handlers();
}

bool
xm_cli_interrupted(void)
{
    return interrupted;
}

void
xm_cli_forget_interrupt(void)
{
    interrupted = false;
}

void
xm_cli_say_interrupted(void)
{
    fputs("xemoe: stopped by Ctrl-C\n", stderr);
}

int
xm_cli_wake_fd(void)
{
    return wake[0];
}

void
xm_cli_wake_drain(void)
{
    char bytes[16];
    while (wake[0] >= 0 && read(wake[0], bytes, sizeof(bytes)) > 0)
        ;
}

void
xm_cli_wake_on(int signal_number, bool *came)
{
    for (int i = 0; i < MOST_WAKERS; i++) {
        if (wakers[i].signal_number)
            continue;
        wakers[i].came = came;
        wakers[i].signal_number = signal_number;
        if (!handle(signal_number, on_waker, &wakers[i].before))
            wakers[i].signal_number = 0;
        return;
    }
}

void
xm_cli_wake_off(int signal_number)
{
    for (int i = 0; i < MOST_WAKERS; i++) {
        if (wakers[i].signal_number != signal_number)
            continue;
        sigaction(signal_number, &wakers[i].before, NULL);
        wakers[i].signal_number = 0;
    }
    wait_for_handlers();
}

void
xm_cli_line_is_open(bool open)
{
    line_open = open;
}

void
xm_cli_farewell(int fd, const char *codes)
{
    farewell_fd = fd;
    farewell = codes;
}
