/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts: device memory shared with the application, and tensors in it.
 */
#ifndef XM_PLUGIN_CONTEXT_H
#define XM_PLUGIN_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_context;
struct xm_remote;

/* Handles of the application, or NULL. */
struct xm_context_wish {
    void *cl_context, *cl_queue; /* both NULL: the device's own context */
    uint32_t device; /* index in the OpenCL context, where no queue is given */
};

/* Kinds of memory of a tensor on the device. */
enum xm_shared_memory {
    XM_SHARED_OCL_BUFFER,
    XM_SHARED_USM_USER, /* the application's, of any kind */
    XM_SHARED_USM_HOST,
    XM_SHARED_USM_DEVICE
};
struct xm_remote_wish {
    enum xm_shared_memory kind;
    void *handle; /* the application's memory; NULL: allocate */
    uint64_t bytes;
};

struct xm_remote_ops {
    /* Appends keys and values, "MEM_HANDLE 0x… OCL_CONTEXT 0x… SHARED_MEM_TYPE OCL_BUFFER", and
     * sets *pairs to their number. */
    void (*params)(const struct xm_remote *m, struct xm_strbuf *out, size_t *pairs);
    /* Makes the memory at least `bytes` large; its contents are lost. XM_INVALID: the memory
     * belongs to the application. */
    enum xm_status (*grow)(struct xm_remote *m, uint64_t bytes, struct xm_error *err);
    void (*destroy)(struct xm_remote *m);
};

struct xm_remote {
    const struct xm_remote_ops *ops;
    struct xm_context *context; /* referenced by the core */
    uint64_t bytes;
    /* the host's pointer to memory that the library allocated; NULL: it has none */
    void *host;
};
void xm_remote_destroy(struct xm_remote *m); /* NULL is allowed */

struct xm_context_ops {
    void (*params)(const struct xm_context *c, struct xm_strbuf *out, size_t *pairs);
    void (*device_name)(const struct xm_context *c, struct xm_strbuf *out); /* "GPU.0" */
    enum xm_status (*create_remote)(struct xm_context *c,
                                    const struct xm_remote_wish *wish,
                                    struct xm_remote **out, struct xm_error *err);
    void (*destroy)(struct xm_context *c);
};

/* A context. Any thread may use it, and it may outlive its plugin. */
struct xm_context {
    const struct xm_context_ops *ops;
    int refs;
    bool has_usm;
};
void xm_context_ref(struct xm_context *c);
void xm_context_unref(struct xm_context *c); /* NULL is allowed */
enum xm_status xm_context_create_remote(struct xm_context *c,
                                        const struct xm_remote_wish *wish,
                                        struct xm_remote **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
