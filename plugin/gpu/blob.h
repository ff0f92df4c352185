/* SPDX-License-Identifier: Apache-2.0
 *
 * A compiled model as a file: what another process needs to make the same program without running
 * a pass.
 *
 *     device and config ─ the rewritten graph's text ─ where the bytes of its constants are ─
 *     what the driver has made of the kernels ─ bytes that are in no file
 *
 * Bytes that lie unchanged in a mapped file (a model's weights) can be referred to: path, size,
 * time of the last change, and a checksum of samples. All others are in the blob, aligned, and
 * are used in place. Weights that a device holds in another form are referred to as all others,
 * and turned again: the program has no such bytes on the host.
 *
 * A blob is for the very device, driver and xemoe that made it; anything else is refused with its
 * reason. Every size in it is checked before it is used, and nothing larger than itself is
 * allocated for it. But it holds code for the device: who imports a blob trusts who made it.
 */
#ifndef XM_PLUGIN_GPU_BLOB_H
#define XM_PLUGIN_GPU_BLOB_H

#include "plugin/gpu/program.h"
#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the program piece by piece. */
enum xm_status xm_blob_write(struct xm_program *p, const struct xm_export *to,
                             struct xm_error *err);

/* What was read; views of the blob, but for what is owned. */
struct xm_blob {
    const struct xm_import *from;
    /* owned; refers to the blob and the files by their mappings */
    struct xm_graph *graph;
    const char *notes;
    const char *config;             /* lines "KEY value" */
    struct xm_pass_report *reports; /* owned */
    size_t n_reports;
    const uint8_t *kernels;
    uint64_t n_kernel_bytes;
};

/* Checks all of it, for this device (XM_UNSUPPORTED: it is another's). *out is for xm_blob_free,
 * also on failure. */
enum xm_status xm_blob_read(const struct xm_import *from,
                            const struct xm_device_info *device, struct xm_blob *out,
                            struct xm_error *err);
void xm_blob_free(struct xm_blob *b);

/* The blob's options into those of the importing process, which has the last word on those it has
 * set. XM_INVALID: it wants others that the passes had looked at. */
enum xm_status xm_blob_config(const struct xm_blob *b, struct xm_config *c,
                              struct xm_error *err);
/* What the driver has made of a kernel, for xm_engine_offer_kernels; ctx: the blob. */
const void *xm_blob_kernel(void *ctx, const struct xm_kernel_key *key, size_t *n);

#ifdef __cplusplus
}
#endif
#endif
