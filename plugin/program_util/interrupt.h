/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles Ctrl-C, other signals that end the process, and mapped files that become unreadable.
 *
 * Ctrl-C has one of three effects:
 *
 *     at first                     ends the process, with a sentence and XM_EXIT_CANCELLED
 *     after xm_cli_catch_run       the first one cancels the run, the second one ends the process
 *     after xm_cli_note_interrupt  is remembered only; code that waits for input checks it
 *
 * No Ctrl-C is lost: a remembered one cancels the next run that is caught, and one that arrives
 * between catching and running cancels that run. SIGTERM, SIGHUP, SIGQUIT and the like end the
 * process at any time, by that signal. A mapped file that cannot be read any more (SIGBUS) ends it
 * with a sentence and XM_EXIT_FILE. Before the process ends in a handler, unfinished output files
 * are removed, the terminal's modes are restored, and an incomplete line of text is ended.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_INTERRUPT_H
#define XM_PLUGIN_PROGRAM_UTIL_INTERRUPT_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Cancels a run, in a signal handler in any thread, and makes it usable again. */
struct xm_interruptible {
    void (*cancel)(void *run);
    void (*resume)(void *run);
};

/* Installs the handlers; xm_cli_begin calls it. */
void xm_cli_watch_interrupt(void);
/* From now on the first Ctrl-C cancels `run`, until xm_cli_release_interrupt or
 * xm_cli_note_interrupt. `ops` is static and the same in every call. */
void xm_cli_catch_run(void *run, const struct xm_interruptible *ops);
/* From now on Ctrl-C ends the process again. On return no handler uses the run, in any thread. */
void xm_cli_release_interrupt(void);
/* From now on Ctrl-C is only remembered, until the next xm_cli_catch_run or
 * xm_cli_release_interrupt. Releases the caught run. */
void xm_cli_note_interrupt(void);
/* Whether Ctrl-C was pressed since the last xm_cli_forget_interrupt. */
bool xm_cli_interrupted(void);
void xm_cli_forget_interrupt(void);
/* Prints "xemoe: stopped by Ctrl-C" on standard error, as the handler does. */
void xm_cli_say_interrupted(void);

/* A file descriptor for poll(): readable once a signal of xm_cli_wake_on, or a remembered Ctrl-C,
 * has arrived. -1: it could not be created. */
int xm_cli_wake_fd(void);
void xm_cli_wake_drain(void);
/* From now on this signal makes the descriptor readable and sets *came (read it with xm_flag_get),
 * which must live until xm_cli_wake_off. No effect if the program was started with the signal
 * ignored. */
void xm_cli_wake_on(int signal_number, bool *came);
/* Restores the signal's previous effect. */
void xm_cli_wake_off(int signal_number);

/* Tells the handlers whether standard output ends in an incomplete line. */
void xm_cli_line_is_open(bool open);
/* Call it while the modes of the terminal `fd` are changed. `codes` are the escape codes that a
 * handler writes to the terminal before it restores the modes and ends the process. NULL: the modes
 * have been restored. */
void xm_cli_farewell(int fd, const char *codes);

#ifdef __cplusplus
}
#endif
#endif
