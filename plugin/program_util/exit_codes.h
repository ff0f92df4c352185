/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs begin and end with: standard streams, exit codes, sentences on standard error.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_EXIT_CODES_H
#define XM_PLUGIN_PROGRAM_UTIL_EXIT_CODES_H

#include "runtime/util/compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_exit {
    XM_EXIT_OK = 0,
    XM_EXIT_FAILED = 1,     /* something went wrong while running        */
    XM_EXIT_USAGE = 2,      /* the command line                          */
    XM_EXIT_FILE = 3,       /* a file: missing, wrong, not to be written */
    XM_EXIT_DEVICE = 4,     /* the device, or its memory                  */
    XM_EXIT_TOLERANCE = 5,  /* verify: a step differs too much            */
    XM_EXIT_CANCELLED = 130 /* Ctrl-C                                    */
};

/* First in main: closed standard streams are filled, files that are mapped for reading are never
 * written over, and XM_DEBUG is checked. XM_EXIT_USAGE, with the sentence: its value is wrong. */
int xm_cli_start(void);
/* Prints a sentence about the command line; XM_EXIT_USAGE. */
int xm_cli_usage(const char *fmt, ...) XM_PRINTF(1, 2);
/* Flushes standard output; XM_EXIT_FILE when not all of it could be written. */
int xm_cli_flush(void);
/* MiB of memory this process has had resident at most, file pages included; 0: the system
 * does not say. */
double xm_cli_peak_rss(void);

#ifdef __cplusplus
}
#endif
#endif
