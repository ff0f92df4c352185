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
    /* absolute path of the folder that will hold the file; NULL: not known */
    const char *folder;
    bool is_whole; /* includes the weights that are in files */
};

typedef enum xm_status (*xm_exporter)(void *ctx, const struct xm_export *to,
                                      struct xm_error *err);
/* Calls `make` to write a temporary file beside `path` and renames it, so that readers see either
 * the old file or the complete new one. */
enum xm_status xm_export_file(xm_exporter make, void *ctx, const char *path,
                              struct xm_error *err);

/* An exported model. */
struct xm_import {
    /* owner of the bytes; a user that needs them in place adds a reference */
    struct xm_mapping *owner;
    const uint8_t *bytes;
    uint64_t n_bytes;
    char *folder; /* absolute path of the folder that holds the file; NULL: not known */
    /* Where the files that the blob refers to are searched for first: the path of the file itself,
     * or of their folder. */
    const char *weights; /* NULL: nowhere */
};
/* Maps a file. The caller frees *out with xm_import_close, even while models made from it still
 * exist. */
enum xm_status xm_import_open(const char *path, struct xm_import *out,
                              struct xm_error *err);
void xm_import_close(struct xm_import *i);

/* ---- blobs: exported models of OpenCL devices ---- */

/* The first bytes of such a blob. */
#define XM_BLOB_MAGIC "xmblob\r\n"
/* Whether the bytes begin like a blob. */
bool xm_blob_recognises(const struct xm_import *from);
/* Appends the path of the model's file, which is the first file that the blob refers to.
 * XM_NOT_FOUND: it refers to none. */
enum xm_status xm_blob_model_file(const struct xm_import *from, struct xm_strbuf *out,
                                  struct xm_error *err);

/* The facts in a blob, also if it was made for another device or version. Texts are views of the
 * blob. */
struct xm_blob_facts {
    const char *identity; /* lines "name value": xemoe, device, driver …  */
    const char *config;   /* lines "KEY value"                             */
    const char *notes;    /* lines                                          */
    const char *passes;   /* lines "name skipped progress nodes"            */
    /* bytes of the blob; bytes of constants inside it */
    uint64_t n_bytes, constant_bytes;
    uint64_t kernels, kernel_bytes;
    /* the files that the blob refers to, with their sizes at the time of export */
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
