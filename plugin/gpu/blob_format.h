/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of a blob (an exported compiled model), for blob_write.c, blob_read.c and tests.
 * Numbers have the machine's byte order.
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
    XM_BLOB_IDENTITY, /* text: lines "name value"; versions, device, driver     */
    XM_BLOB_CONFIG,   /* text: lines "KEY value"; options set or read by passes */
    XM_BLOB_GRAPH,    /* text of transformations/graph/text.h                   */
    XM_BLOB_NOTES,    /* text: the notes of struct xm_compiled                  */
    XM_BLOB_PASSES,   /* text: "name skipped progress nodes"                    */
    XM_BLOB_FILES,    /* struct xm_blob_file, then the paths' texts             */
    XM_BLOB_VIEWS,    /* struct xm_blob_view, sorted by node and part           */
    XM_BLOB_KERNELS,  /* struct xm_blob_kernel_head and bytes, padded to 8 bytes */
    XM_BLOB_BYTES,    /* bytes of constants that are in no file                 */
    XM_BLOB_SECTIONS
};

/* A section, in bytes from the beginning of the blob. Texts end with a NUL, which is counted. */
struct xm_blob_range {
    uint64_t offset, n_bytes;
    uint64_t checksum; /* 0 for XM_BLOB_BYTES, where each view has a checksum */
};

struct xm_blob_header {
    char magic[8];
    uint32_t byte_order, version;
    uint64_t n_bytes;  /* of the whole blob                                */
    uint64_t checksum; /* of the header with this member set to 0          */
    uint64_t n_files;
    struct xm_blob_range section[XM_BLOB_SECTIONS];
};

/* A file that holds constants, and how to recognise it. */
struct xm_blob_file {
    uint64_t n_bytes;
    int64_t mtime_ns;  /* its modification time      */
    uint64_t samples;  /* xm_checksum_samples        */
    uint64_t absolute; /* offset of its path in the section */
    /* offset, in the section, of its path relative to the blob's folder; UINT64_MAX: it has none */
    uint64_t relative;
};

enum xm_blob_part {
    XM_BLOB_DATA,
    XM_BLOB_SCALE,
    XM_BLOB_ZERO_POINT,
    XM_BLOB_CODEBOOK,
    XM_BLOB_FACTOR
};

/* Where the bytes of a constant node lie. */
struct xm_blob_view {
    uint32_t node, part; /* the node's number in the graph; enum xm_blob_part */
    uint32_t file; /* 1 + index of the file in XM_BLOB_FILES; 0: section XM_BLOB_BYTES */
    uint32_t reserved;
    uint64_t offset, n_bytes;   /* in the file or the section                */
    uint64_t checksum;          /* of bytes in the section; 0 for a file     */
    struct xm_weight_view view; /* for XM_BLOB_DATA of a weight: its view    */
};

/* Checks header, sections and checksums, and copies the header to *out. Does not check whether the
 * blob was made for this device and version. */
enum xm_status xm_blob_check(const struct xm_import *from, struct xm_blob_header *out,
                             struct xm_error *err);

/* Compares two views by node, then part: the order of section XM_BLOB_VIEWS. For qsort and
 * bsearch. */
int xm_blob_view_order(const void *a, const void *b);

struct xm_blob_kernel_head {
    struct xm_kernel_key key;
    uint64_t n_bytes;
};

/* Returns whether a blob stores the option's value. True for options of compiled models, except
 * those that select the device or the content of blobs. */
bool xm_blob_has_option(enum xm_option o);
/* Returns whether passes read the option, so that an import cannot change its value. */
bool xm_blob_decides_graph(enum xm_option o);
/* Appends the text of XM_BLOB_IDENTITY for this build of xemoe on a device. */
void xm_blob_identity(const struct xm_device_info *d, struct xm_strbuf *out);
/* Returns the checksum of the header with h->checksum taken as 0. */
uint64_t xm_blob_header_checksum(const struct xm_blob_header *h);

#ifdef __cplusplus
}
#endif
#endif
