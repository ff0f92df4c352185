/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of a blob, for blob_write.c, blob_read.c and tests. Numbers are the machine's own.
 *
 *     header │ section │ section │ …      each section at a multiple of XM_BLOB_ALIGN
 */
#ifndef XM_PLUGIN_GPU_BLOB_FORMAT_H
#define XM_PLUGIN_GPU_BLOB_FORMAT_H

#include "plugin/exported.h"
#include "runtime/config.h"
#include "runtime/kernel_cache.h"
#include "runtime/util/strbuf.h"
#include "runtime/weight.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_BLOB_BYTE_ORDER = 0x01020304, XM_BLOB_VERSION = 1, XM_BLOB_ALIGN = 4096 };

enum xm_blob_section {
    XM_BLOB_IDENTITY, /* text: who can use it, a line "what value" each         */
    XM_BLOB_CONFIG,   /* text: "KEY value", where set or of weight for the graph */
    XM_BLOB_GRAPH,    /* text of transformations/graph/text.h                   */
    XM_BLOB_NOTES,    /* text                                                   */
    XM_BLOB_PASSES,   /* text: "name skipped progress nodes"                    */
    XM_BLOB_FILES,    /* struct xm_blob_file, then the paths' texts             */
    XM_BLOB_VIEWS,    /* struct xm_blob_view, by node and part                  */
    XM_BLOB_KERNELS,  /* struct xm_blob_kernel_head, bytes; the next at 8 bytes */
    XM_BLOB_BYTES,    /* of constants                                           */
    XM_BLOB_SECTIONS
};

/* Texts end with a NUL, which counts. */
struct xm_blob_range {
    uint64_t offset, n_bytes;
    uint64_t checksum; /* of BYTES 0: each view has its own */
};

struct xm_blob_header {
    char magic[8];
    uint32_t byte_order, version;
    uint64_t n_bytes;  /* of the blob                                      */
    uint64_t checksum; /* of the header, with this 0                       */
    uint64_t n_files;
    struct xm_blob_range section[XM_BLOB_SECTIONS];
};

/* A file that constants lie in. Paths: bytes from the beginning of the section; `relative` (to the
 * blob's folder) UINT64_MAX: there is none. */
struct xm_blob_file {
    uint64_t n_bytes;
    int64_t mtime_ns;
    uint64_t samples; /* xm_checksum_samples */
    uint64_t absolute, relative;
};

enum xm_blob_part {
    XM_BLOB_DATA,
    XM_BLOB_SCALE,
    XM_BLOB_ZERO_POINT,
    XM_BLOB_CODEBOOK,
    XM_BLOB_FACTOR
};

/* Bytes of a node: in file `file` - 1, or of section BYTES. */
struct xm_blob_view {
    uint32_t node, part;
    uint32_t file, reserved;
    uint64_t offset, n_bytes;
    uint64_t checksum;          /* of bytes in the blob */
    struct xm_weight_view view; /* of a weight's data   */
};

/* Header, sections and checksums of a blob, whoever can use it. */
enum xm_status xm_blob_check(const struct xm_import *from, struct xm_blob_header *out,
                             struct xm_error *err);

/* The order of section VIEWS, for qsort and bsearch. */
int xm_blob_view_order(const void *a, const void *b);

struct xm_blob_kernel_head {
    struct xm_kernel_key key;
    uint64_t n_bytes;
};

/* Whether an option is the blob's: of programs, but for which device is meant, and for what a blob
 * holds. */
bool xm_blob_has_option(enum xm_option o);
/* Whether passes look at it: then it cannot be another once they have run. */
bool xm_blob_decides_graph(enum xm_option o);
/* The identity of this xemoe on this device. */
void xm_blob_identity(const struct xm_device_info *d, struct xm_strbuf *out);
/* That of a header. */
uint64_t xm_blob_header_checksum(const struct xm_blob_header *h);

#ifdef __cplusplus
}
#endif
#endif
