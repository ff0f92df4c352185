/* SPDX-License-Identifier: Apache-2.0
 *
 * The build options of a kernel as text:
 *
 *     -DSRC=f16 -DROWS=8 -DN_EPSILONS=2 -DEPSILONS=1e-6f,1e-5f
 *
 * A compiler takes a wrong number of values, or a cut one, without a word, and the kernel computes
 * something else. So every text is checked before a kernel is built with it:
 *
 *   -DNAME           -DNAME=value       or an option of the compiler: -cl-…, -W…
 *   value            numbers, identifiers, calls of macros with them, one after the other
 *   a list           values with commas between them, N_<NAME> says how many: before or behind it
 */
#ifndef XM_RUNTIME_KERNEL_DEFINES_H
#define XM_RUNTIME_KERNEL_DEFINES_H

#include <stdarg.h>
#include <stddef.h>

#include "runtime/util/compiler.h"
#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* snprintf for such texts, which xm_defines_check refuses when they did not fit. Returns how many
 * characters were written. */
size_t xm_defines_print(char *out, size_t n, const char *fmt, ...) XM_PRINTF(3, 4);
size_t xm_defines_print_v(char *out, size_t n, const char *fmt, va_list ap);

/* XM_NOT_BUILT: no kernel can be built with them; the sentence says which and why. */
enum xm_status xm_defines_check(const char *defines, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
