/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a kernel, with its includes expanded.
 *
 * kernels/CMakeLists.txt embeds every file of kernels/cl into the table below. A line `#include
 * "x.h"` is replaced by the file include/x.h (each file once, so include guards are not needed),
 * "x_*.h" by every embedded file whose name matches; any other #include stays as it is. With
 * XM_KERNEL_DIR set, files of that folder replace the embedded ones, so that kernels can be changed
 * without building xemoe again.
 */
#ifndef XM_RUNTIME_KERNEL_SOURCE_H
#define XM_RUNTIME_KERNEL_SOURCE_H

#include <stddef.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_kernel_file {
    const char *name; /* "copy_bytes.cl", "include/index.h"      */
    const char *text; /* NUL-terminated                          */
};
extern const struct xm_kernel_file xm_kernel_files[];
extern const size_t xm_n_kernel_files;

/* Appends the text of kernel `name` (file <name>.cl) to `out`. XM_NOT_FOUND names the
 * file that is missing and the one that includes it. */
enum xm_status xm_kernel_source(const char *name, struct xm_strbuf *out,
                                struct xm_error *err);
/* Appends the text of include/<name>, which the caller puts before a kernel. */
enum xm_status xm_kernel_include(const char *name, struct xm_strbuf *out,
                                 struct xm_error *err);
/* As xm_kernel_source, but over another table of files and without XM_KERNEL_DIR. */
enum xm_status xm_kernel_source_from(const struct xm_kernel_file *files, size_t n_files,
                                     const char *name, struct xm_strbuf *out,
                                     struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
