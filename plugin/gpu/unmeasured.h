/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of a program whose kernels are chosen by the order of their tables, because nothing has
 * been measured on the device yet (primitives/measured_rows.h).
 */
#ifndef XM_PLUGIN_GPU_UNMEASURED_H
#define XM_PLUGIN_GPU_UNMEASURED_H

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_program;

/* Appends their problems (primitives/timed_problem.h), without tokens, one a line and each once;
 * first those of which all layers together read the most bytes for a token. Nothing where there is
 * no CACHE_DIR, or kept rows are not wanted. */
enum xm_status xm_program_unmeasured(const struct xm_program *p, struct xm_strbuf *out,
                                     struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
