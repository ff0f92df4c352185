/* SPDX-License-Identifier: Apache-2.0
 *
 * Exported compiled models: writing and reading.
 */
#ifndef XM_PLUGIN_EXPORTED_H
#define XM_PLUGIN_EXPORTED_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_mapping;

/* The destination of an exported model, which is written in pieces, in order. */
struct xm_export {
    enum xm_status (*write)(void *ctx, const void *bytes, uint64_t n,
                            struct xm_error *err);
    void *ctx;
    const char *folder; /* that it will lie in, absolute; NULL: not known */
    bool is_whole;      /* with the weights that lie in files */
};

typedef enum xm_status (*xm_exporter)(void *ctx, const struct xm_export *to,
                                      struct xm_error *err);
/* Writes a temporary file beside `path` and renames it: readers see the old file or the whole new
 * one. */
enum xm_status xm_export_file(xm_exporter make, void *ctx, const char *path,
                              struct xm_error *err);

/* An exported model. */
struct xm_import {
    struct xm_mapping *owner; /* of the bytes; referenced by what uses them in place */
    const uint8_t *bytes;
    uint64_t n_bytes;
    char *folder; /* that it lies in, absolute; NULL: not known */
    /* Where files that it refers to are looked for first: the file itself, or their folder. */
    const char *weights; /* NULL: nowhere */
};
/* A file, mapped; for xm_import_close, which what was made of it need not wait for. */
enum xm_status xm_import_open(const char *path, struct xm_import *out,
                              struct xm_error *err);
void xm_import_close(struct xm_import *i);

/* ---- what the plugins on OpenCL devices export ---- */

/* The first bytes of such a blob. */
#define XM_BLOB_MAGIC "xmblob\r\n"
/* Whether these bytes begin with them. */
bool xm_blob_recognises(const struct xm_import *from);
/* Appends the path of the first file that the blob refers to, the model's. XM_NOT_FOUND: there is
 * none. */
enum xm_status xm_blob_model_file(const struct xm_import *from, struct xm_strbuf *out,
                                  struct xm_error *err);

/* The facts in a blob, also if it was made for another device or version. Texts are views of the
 * blob. */
struct xm_blob_facts {
    const char *identity;             /* lines "name value": xemoe, device, driver …  */
    const char *config;               /* lines "KEY value"                             */
    const char *notes;                /* lines                                          */
    const char *passes;               /* lines "name skipped progress nodes"            */
    uint64_t n_bytes, constant_bytes; /* of the blob; of constants that lie in it */
    uint64_t kernels, kernel_bytes;
    /* the files that it refers to, with the sizes when it was made */
    struct xm_blob_file_fact {
        const char *path;
        uint64_t n_bytes;
    } * files; /* owned */
    uint64_t n_files;
};
/* XM_INVALID: the blob is damaged. The caller frees *out with xm_blob_facts_free, also on
 * failure. */
enum xm_status xm_blob_facts(const struct xm_import *from, struct xm_blob_facts *out,
                             struct xm_error *err);
void xm_blob_facts_free(struct xm_blob_facts *f);

#ifdef __cplusplus
}
#endif
#endif
