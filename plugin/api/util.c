/* SPDX-License-Identifier: Apache-2.0
 *
 * The log callback. It is stored in its own variable, because a function pointer cannot portably be
 * converted to the log sink's void pointer.
 */
#include <stdatomic.h>

#include "openvino/c/ov_util.h"
#include "runtime/util/log.h"

/* NULL: lines are dropped. Threads may write lines while another one sets this. */
static _Atomic(ov_util_log_callback_func) user_function;

static void
forward_line(enum xm_log_level level, const char *line, void *ctx)
{
    (void)level;
    (void)ctx;
    ov_util_log_callback_func function = atomic_load(&user_function);
    if (function)
        function(line);
}

void
ov_util_set_log_callback(ov_util_log_callback_func func)
{
    atomic_store(&user_function, func);
    xm_log_set_sink(forward_line, NULL);
}

void
ov_util_reset_log_callback(void)
{
    xm_log_set_sink(NULL, NULL);
}
