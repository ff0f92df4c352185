/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/number.h"

static const char *const flag_names[XM_DEBUG_COUNT] = {
#define DEBUG_FLAG(id, text, help) [XM_DEBUG_##id] = text,
#include "runtime/util/debug_flags.def"
};

static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
/* log_sink and its context are set and read under the lock */
static xm_log_sink log_sink;
static void *log_sink_ctx;
static atomic_int log_level = XM_LOG_WARNING;
static bool debug_flags[XM_DEBUG_COUNT];
static char unknown_flag[64]; /* the first name in XM_DEBUG that is no flag; "": none */
static pthread_once_t debug_once = PTHREAD_ONCE_INIT;

void
xm_log_set_sink(xm_log_sink sink, void *ctx)
{
    pthread_mutex_lock(&sink_lock);
    log_sink = sink;
    log_sink_ctx = ctx;
    pthread_mutex_unlock(&sink_lock);
}

void
xm_log_set_level(enum xm_log_level level)
{
    atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

const char *
xm_log_prefix(enum xm_log_level level)
{
    static const char *const prefix[] = {"error: ", "warning: ", "", "debug: "};
    return prefix[level];
}

static void
emit(enum xm_log_level level, const char *line)
{
    pthread_mutex_lock(&sink_lock);
    const xm_log_sink sink = log_sink;
    void *ctx = log_sink_ctx;
    pthread_mutex_unlock(&sink_lock);
    if (sink)
        sink(level, line, ctx);
    else
        fprintf(stderr, "xemoe: %s%s\n", xm_log_prefix(level), line);
}

void
xm_log(enum xm_log_level level, const char *fmt, ...)
{
    if ((int)level > atomic_load_explicit(&log_level, memory_order_relaxed))
        return;
    char line[2048];
    va_list ap;
    va_start(ap, fmt);
    xm_print_v(line, sizeof(line), fmt, ap);
    va_end(ap);
    emit(level, line);
}

const char *
xm_env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

static void
print_flags(void)
{
    fputs("XM_DEBUG takes flags separated by commas:\n"
#define DEBUG_FLAG(id, text, help) "  " text "\t" help "\n"
#include "runtime/util/debug_flags.def"
          ,
          stderr);
}

static void
set_flag(const char *name, size_t n)
{
    if (n == 4 && memcmp(name, "help", 4) == 0) {
        print_flags();
        return;
    }
    for (int i = 0; i < XM_DEBUG_COUNT; i++) {
        if (strlen(flag_names[i]) == n && memcmp(flag_names[i], name, n) == 0) {
            debug_flags[i] = true;
            return;
        }
    }
    if (!unknown_flag[0])
        snprintf(unknown_flag, sizeof(unknown_flag), "%.*s", (int)n, name);
}

static void
parse_debug_flags(void)
{
    const char *s = xm_env("XM_DEBUG");
    while (s && *s) {
        size_t n = strcspn(s, ",");
        if (n > 0)
            set_flag(s, n);
        s += n + (s[n] == ',');
    }
}

enum xm_status
xm_debug_check(struct xm_error *err)
{
    pthread_once(&debug_once, parse_debug_flags);
    if (unknown_flag[0])
        return xm_fail(err, XM_INVALID,
                       "XM_DEBUG has no flag '%s': XM_DEBUG=help lists them",
                       unknown_flag);
    return XM_OK;
}

bool
xm_debug_on(enum xm_debug_flag flag)
{
    pthread_once(&debug_once, parse_debug_flags);
    return debug_flags[flag];
}

void
xm_debug(enum xm_debug_flag flag, const char *fmt, ...)
{
    if (!xm_debug_on(flag))
        return;
    char line[2048];
    int n = snprintf(line, sizeof(line), "%s: ", flag_names[flag]);
    va_list ap;
    va_start(ap, fmt);
    xm_print_v(line + n, sizeof(line) - (size_t)n, fmt, ap);
    va_end(ap);
    emit(XM_LOG_DEBUG, line);
}
