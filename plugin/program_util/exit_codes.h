/* SPDX-License-Identifier: Apache-2.0
 *
 * The beginning and end of programs: standard streams, exit codes, sentences on standard error.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_EXIT_CODES_H
#define XM_PLUGIN_PROGRAM_UTIL_EXIT_CODES_H

#include "runtime/util/compiler.h"
#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_exit {
    XM_EXIT_OK = 0,
    XM_EXIT_FAILED = 1,     /* a failure without a code of its own */
    XM_EXIT_USAGE = 2,      /* the command line or an environment variable is wrong */
    XM_EXIT_FILE = 3,       /* a file is missing, wrong or not writable   */
    XM_EXIT_DEVICE = 4,     /* the device failed, or lacks memory */
    XM_EXIT_TOLERANCE = 5,  /* verify: a step differs too much            */
    XM_EXIT_CANCELLED = 130 /* Ctrl-C                                     */
};

/* Returns the exit code of a program that ends with this status. */
int xm_cli_exit_code(enum xm_status status);
/* Call it first in main: opens /dev/null for closed standard streams, protects mapped input files
 * from being overwritten by the program, and checks XM_DEBUG. Returns XM_EXIT_OK, or XM_EXIT_USAGE
 * if the value of XM_DEBUG is wrong; then it has printed a sentence. */
int xm_cli_start(void);
/* Prints a sentence about the command line and returns XM_EXIT_USAGE. */
int xm_cli_usage(const char *fmt, ...) XM_PRINTF(1, 2);
/* As xm_cli_usage, for a failure of xm_cli_parse; `help` is the command line that prints the
 * help. */
int xm_cli_usage_of(const struct xm_error *err, const char *help);
/* Flushes standard output. Returns XM_EXIT_FILE if not all of it could be written, after printing a
 * sentence. */
int xm_cli_flush(void);
/* The process's peak resident memory in MiB, mapped file pages included; 0: the system does not
 * report it. */
double xm_cli_peak_rss(void);

#ifdef __cplusplus
}
#endif
#endif
