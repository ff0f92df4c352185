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

/* Appends the problems of these steps (primitives/timed_problem.h) without the number of tokens,
 * one a line. Equal problems of several layers are one line. The problems whose layers together
 * read the most bytes for a token come first. Appends nothing if CACHE_DIR is not set, or if
 * measured choices are not to be used. */
enum xm_status xm_program_unmeasured(const struct xm_program *p, struct xm_strbuf *out,
                                     struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
