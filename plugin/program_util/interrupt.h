/* SPDX-License-Identifier: Apache-2.0
 *
 * Ctrl-C, other signals that end the process, and files that are mapped and vanish.
 *
 *     at first           Ctrl-C ends the process, with a sentence and XM_EXIT_CANCELLED
 *     while a run is caught  the first one cancels it, the next one ends the process
 *     while it is noted  Ctrl-C is remembered only: whoever waits for input looks
 *
 * A Ctrl-C is never lost: one that was noted cancels the request that is caught next, and one
 * that comes before a caught request runs cancels that run. SIGTERM, SIGHUP, Ctrl-\ and their kin
 * end the process at any time, by that signal; a mapped file that cannot be read any more ends it
 * with a sentence and XM_EXIT_FILE. When the process ends in a handler, files that it has not
 * finished are removed, the terminal gets its modes back, and a line of text that is not complete
 * is ended.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_INTERRUPT_H
#define XM_PLUGIN_PROGRAM_UTIL_INTERRUPT_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a run is cancelled from a signal's handler, in any thread, and made ready again. */
struct xm_interruptible {
    void (*cancel)(void *run);
    void (*resume)(void *run);
};

/* For all of them; xm_cli_begin calls it. */
void xm_cli_watch_interrupt(void);
/* From now on the first Ctrl-C cancels `run`, until xm_cli_release_interrupt or _note_. `ops` are
 * static, and the same in every call. */
void xm_cli_catch_run(void *run, const struct xm_interruptible *ops);
/* Ctrl-C ends the process again. Afterwards no handler uses the request, in no thread. */
void xm_cli_release_interrupt(void);
/* From now on, until a request is caught or released: only remember it. The request that was
 * caught is let go as by a release. */
void xm_cli_note_interrupt(void);
/* Whether Ctrl-C has come and has not been forgotten. */
bool xm_cli_interrupted(void);
void xm_cli_forget_interrupt(void);
/* "xemoe: stopped by Ctrl-C" on standard error, as the handler says it. */
void xm_cli_say_interrupted(void);

/* For those who wait with poll(): readable once a signal of xm_cli_wake_on has come, or Ctrl-C
 * while it is noted. -1: there is none. */
int xm_cli_wake_fd(void);
void xm_cli_wake_drain(void);
/* This signal, too, makes it readable, and raises *came (xm_flag_get), which lives until
 * xm_cli_wake_off. Nothing is done where the program was started to ignore the signal. */
void xm_cli_wake_on(int signal_number, bool *came);
/* And from here on does what it did before. */
void xm_cli_wake_off(int signal_number);

/* Whether a line of text stands on standard output that has no end yet. */
void xm_cli_line_is_open(bool open);
/* While the modes of the terminal are changed: what to write to this file, which is the terminal,
 * if the process ends in a handler, which also gives it back its modes. NULL: they are as they
 * were. */
void xm_cli_farewell(int fd, const char *codes);

#ifdef __cplusplus
}
#endif
#endif
