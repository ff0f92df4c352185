/* SPDX-License-Identifier: Apache-2.0
 *
 * The only place for compiler extensions and language shims.
 */
#ifndef XM_RUNTIME_UTIL_COMPILER_H
#define XM_RUNTIME_UTIL_COMPILER_H

#if defined(__GNUC__)
#define XM_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define XM_API                __attribute__((visibility("default")))
#else
#define XM_PRINTF(fmt, first)
#define XM_API
#endif

#define XM_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
