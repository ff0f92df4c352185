/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/progress.h"
#include "plugin/cli/terminal.h"

enum mode { LEAVE, CANCEL, NOTE };

/* All that the handlers read is written by the main thread before they may need it. */
static volatile sig_atomic_t mode = LEAVE;
static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t line_open;
static struct xm_infer *volatile running;
static const char *volatile farewell;
static volatile sig_atomic_t farewell_fd;
static struct termios at_start;
static bool has_modes, errors_on_terminal, text_on_terminal;
static int wake[2] = {-1, -1};

enum { MOST_WAKERS = 4 };
static struct {
    volatile sig_atomic_t signal_number; /* 0: nobody's */
    volatile sig_atomic_t *volatile came;
    struct sigaction before;
} wakers[MOST_WAKERS];

/* ---- in handlers: only what POSIX allows there ------------------------------------- */

static void
say(int fd, const char *text)
{
    size_t n = 0;
    while (text[n])
        n++;
    if (write(fd, text, n) < 0)
        return; /* nobody is left to be told */
}

/* On a terminal the cursor may stand behind a text, a progress line, or "^C". */
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
leave(int signal_number)
{
    if (farewell)
        say((int)farewell_fd, farewell);
    if (farewell && has_modes && tcgetpgrp(STDIN_FILENO) == getpgrp()) /* in front */
        tcsetattr(STDIN_FILENO, TCSANOW, &at_start);
    end_open_lines();
    if (signal_number == SIGINT) {
        say(STDERR_FILENO, "xemoe: stopped by Ctrl-C\n");
        _exit(XM_EXIT_CANCELLED);
    }
    say(STDERR_FILENO, "xemoe: stopped by a signal to terminate\n");
    signal(signal_number, SIG_DFL); /* who waits for this process sees the signal */
    raise(signal_number);
}

static void
wake_up(void)
{
    int saved = errno;
    if (write(wake[1], "", 1) < 0)
        errno = saved; /* full: it is readable already */
}

static void
on_interrupt(int signal_number)
{
    if (mode == LEAVE || (mode == CANCEL && interrupted)) {
        leave(signal_number);
        return;
    }
    interrupted = 1;
    struct xm_infer *r = running;
    if (r)
        r->ops->cancel(r);
    else
        wake_up();
}

static void
on_waker(int signal_number)
{
    for (int i = 0; i < MOST_WAKERS; i++) {
        if (wakers[i].signal_number == signal_number)
            *wakers[i].came = 1;
    }
    wake_up();
}

/* ---- outside ----------------------------------------------------------------------- */

/* A signal that the program was started to ignore ("xemoe … &" in a script) stays ignored. */
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
    handle(SIGTERM, leave, &before);
}

/* A Ctrl-C that was noted before has nobody left to look at it but this request. */
void
xm_cli_catch_interrupt(struct xm_infer *r)
{
    r->ops->resume(r);
    running = r;
    mode = CANCEL;
    if (interrupted)
        r->ops->cancel(r);
}

void
xm_cli_release_interrupt(void)
{
    mode = LEAVE;
    running = NULL;
}

void
xm_cli_note_interrupt(void)
{
    running = NULL; /* first: a Ctrl-C in between is to wake, not to cancel */
    mode = NOTE;
}

bool
xm_cli_interrupted(void)
{
    return interrupted != 0;
}

void
xm_cli_forget_interrupt(void)
{
    interrupted = 0;
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
xm_cli_wake_on(int signal_number, volatile sig_atomic_t *came)
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
