/* SPDX-License-Identifier: Apache-2.0
 *
 * Log lines and the XM_DEBUG switches.
 *
 * Messages go to one sink (stderr unless the API installs another). Debug lines are
 * guarded by flags from debug_flags.def: XM_DEBUG=passes,dispatch; XM_DEBUG=help lists
 * them; xm_debug_check reports an unknown flag as an error.
 */
#ifndef XM_RUNTIME_UTIL_LOG_H
#define XM_RUNTIME_UTIL_LOG_H

#include <stdbool.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_log_level {
    XM_LOG_NONE = -1, /* only for xm_log_set_level: no message passes */
    XM_LOG_ERROR,
    XM_LOG_WARNING,
    XM_LOG_INFO,
    XM_LOG_DEBUG,
};

enum xm_debug_flag {
#define DEBUG_FLAG(id, text, help) XM_DEBUG_##id,
#include "runtime/util/debug_flags.def"
    XM_DEBUG_COUNT
};

typedef void (*xm_log_sink)(enum xm_log_level level, const char *line, void *ctx);

/* Sets the function that gets the messages; NULL: stderr again. Process-wide; call it before work
 * begins. */
void xm_log_set_sink(xm_log_sink sink, void *ctx);
/* The prefix that stderr gets for a level, such as "warning: "; static. For other sinks. */
const char *xm_log_prefix(enum xm_log_level level);
/* Messages above `level` are dropped; the default is XM_LOG_WARNING. Process-wide; any thread. */
void xm_log_set_level(enum xm_log_level level);
void xm_log(enum xm_log_level level, const char *fmt, ...) XM_PRINTF(2, 3);

/* Reads XM_DEBUG, once in a process; XM_DEBUG=help prints the table to stderr. XM_INVALID:
 * a name that is no flag. */
enum xm_status xm_debug_check(struct xm_error *err);
/* Whether XM_DEBUG contains this flag. Cheap enough for inner loops on the host. */
bool xm_debug_on(enum xm_debug_flag flag);
/* Sends the line "flag: text" to the sink if the flag is on. */
void xm_debug(enum xm_debug_flag flag, const char *fmt, ...) XM_PRINTF(2, 3);
/* The value of an environment variable, NULL when unset or empty. No other file calls getenv but
 * runtime/config.c. */
const char *xm_env(const char *name);

#ifdef __cplusplus
}
#endif
#endif
