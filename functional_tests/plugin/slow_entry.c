/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin whose entry point waits until the test lets it continue, and then refuses.
 */
#define XM_EXT_PLUGIN
#include <stdio.h>
#include <unistd.h>

#include "xemoe/plugin.h"

static _Atomic int has_begun, may_end;

#pragma GCC visibility push(default)
int slow_has_begun(void);
void slow_may_end(int may);
#pragma GCC visibility pop

int
slow_has_begun(void)
{
    return has_begun;
}

void
slow_may_end(int may)
{
    has_begun = 0;
    may_end = may;
}

int32_t
xm_ext_entry(uint32_t version, const xm_ext_host *host, const xm_ext_ops **ops,
             void **plugin, xm_ext_error *err)
{
    (void)version;
    (void)ops;
    (void)plugin;
    host->log(1, "slow plugin: begun");
    has_begun = 1;
    while (!may_end)
        usleep(1000);
    snprintf(err->text, sizeof(err->text), "slow, and then not");
    return XM_EXT_UNSUPPORTED;
}
