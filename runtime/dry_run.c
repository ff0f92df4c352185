/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dry_run.h"

#include <pthread.h>
#include <string.h>

#include "runtime/util/log.h"

static bool dry;
static pthread_once_t dry_once = PTHREAD_ONCE_INIT;

static bool
is_one(const char *name)
{
    const char *value = xm_env(name);
    return value && strcmp(value, "1") == 0;
}

static void
read_settings(void)
{
    dry = xm_env("XM_DRY_RUN")
              ? is_one("XM_DRY_RUN")
              : is_one("NEOReadDebugKeys") && is_one("SetCommandStreamReceiver");
    if (dry)
        xm_log(XM_LOG_WARNING, "dry run: kernels are compiled and submitted but not "
                               "executed, so no value is computed");
}

bool
xm_dry_run(void)
{
    pthread_once(&dry_once, read_settings);
    return dry;
}
