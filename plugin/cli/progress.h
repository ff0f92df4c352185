/* SPDX-License-Identifier: Apache-2.0
 *
 * One line on standard error that says what is being waited for, when that is a terminal; it is
 * wiped away when the work is done. To a file or a pipe nothing is written.
 */
#ifndef XM_PLUGIN_CLI_PROGRESS_H
#define XM_PLUGIN_CLI_PROGRESS_H

#include "runtime/util/compiler.h"

void xm_progress_show(const char *fmt, ...) XM_PRINTF(1, 2);
void xm_progress_clear(void);

#endif
