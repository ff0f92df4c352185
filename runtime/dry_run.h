/* SPDX-License-Identifier: Apache-2.0
 *
 * Dry runs: the driver compiles kernels, checks every call and records it, and executes
 * nothing (docs/intel_gpu.md). Values that are read back were never computed.
 */
#ifndef XM_RUNTIME_DRY_RUN_H
#define XM_RUNTIME_DRY_RUN_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether this process is a dry run: XM_DRY_RUN=1, or Intel's driver was told to record
 * (NEOReadDebugKeys and SetCommandStreamReceiver); XM_DRY_RUN=0 overrides both. Reads the
 * environment once, and logs once that no value is computed. Code that branches or waits on a
 * value that a kernel writes must ask this first. */
bool xm_dry_run(void);

#ifdef __cplusplus
}
#endif
#endif
