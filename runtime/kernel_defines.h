/* SPDX-License-Identifier: Apache-2.0
 *
 * The build options of a kernel as text:
 *
 *     -DSRC=f16 -DROWS=8 -DN_EPSILONS=2 -DEPSILONS=1e-6f,1e-5f
 *
 * A compiler accepts a wrong number of values, or a truncated value, without a diagnostic, and the
 * kernel computes wrong results. So every text is checked before a kernel is built with it:
 *
 *   -DNAME           -DNAME=value       or an option of the compiler: -cl-…, -W…
 *   value            numbers, identifiers and macro calls with them
 *   a list           values separated by commas; another option -DN_<NAME>=n has their number
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

/* snprintf for build options. If the text does not fit, marks it as cut, so that xm_defines_check
 * refuses it. Returns the number of characters written. */
size_t xm_defines_print(char *out, size_t n, const char *fmt, ...) XM_PRINTF(3, 4);
size_t xm_defines_print_v(char *out, size_t n, const char *fmt, va_list ap);

/* Checks build options as described above. XM_NOT_BUILT: a kernel cannot be built with them; the
 * message names the wrong option and says why. */
enum xm_status xm_defines_check(const char *defines, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
