/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine for tests: any device_info, host memory, and a record of every launch.
 *
 * Commands take effect at once. A kernel does nothing unless the test gave it a host
 * function by name. The n-th call of a kind can be made to fail. One thread at a time.
 */
#ifndef XM_RUNTIME_FAKE_FAKE_H
#define XM_RUNTIME_FAKE_FAKE_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_fake_call {
    XM_FAKE_ALLOC, /* xm_buffer_create, xm_buffer_from_host */
    XM_FAKE_VIEW,
    XM_FAKE_KERNEL,
    XM_FAKE_QUEUE,
    XM_FAKE_RUN,    /* xm_queue_run, and each launch of xm_queue_replay */
    XM_FAKE_BIND,   /* arguments of a launch that is recorded */
    XM_FAKE_REBIND, /* an argument of a recorded launch */
    XM_FAKE_RUN_HOST,
    XM_FAKE_WRITE,
    XM_FAKE_READ,
    XM_FAKE_COPY,
    XM_FAKE_FILL,
    XM_FAKE_FLUSH,
    XM_FAKE_FINISH,
    XM_FAKE_PACE,
    XM_FAKE_ANY /* any of these calls */
};

/* One recorded launch. Buffers of the arguments may have been freed since. */
struct xm_fake_launch {
    const char *kernel, *defines; /* live as long as the engine */
    uint32_t n_args;
    struct xm_arg args[XM_KERNEL_ARGS];
    struct xm_launch launch; /* sizes; 0 is replaced by 1 */
    uint32_t label;          /* label of the queue      */
    uint64_t paces;          /* calls of xm_queue_keep_pace before it */
};

typedef void (*xm_fake_fn)(const struct xm_fake_launch *launch, void *ctx);

/* Opens an engine that reports the facts `info`. config NULL: the defaults. */
enum xm_status xm_fake_engine_create(const struct xm_device_info *info,
                                     const struct xm_config *config,
                                     struct xm_engine **out, struct xm_error *err);

/* Makes the n-th call of this kind from now on (1: the next) fail, once: an allocation with
 * XM_NO_MEMORY, others with XM_DEVICE. 0: no call fails. */
void xm_fake_fail(struct xm_engine *engine, enum xm_fake_call call, uint64_t n);
/* As xm_fake_fail, but the call fails with XM_LOST. */
void xm_fake_lose(struct xm_engine *engine, enum xm_fake_call call, uint64_t n);
/* Whether the call of the last xm_fake_fail or xm_fake_lose has been made and has failed. */
bool xm_fake_failed(const struct xm_engine *engine);
/* The number of calls of this kind so far. */
uint64_t xm_fake_calls(const struct xm_engine *engine, enum xm_fake_call call);

/* Makes later builds of kernel `name` fail (XM_NOT_BUILT) with a build log of two lines. `name`
 * must outlive the engine. False: the table of names is full. */
bool xm_fake_refuse_build(struct xm_engine *engine, const char *name);

/* The launches so far, in order; the array is valid until the next launch. */
const struct xm_fake_launch *xm_fake_launches(const struct xm_engine *engine, size_t *n);
void xm_fake_clear_launches(struct xm_engine *engine);

/* Makes later launches of kernel `name` call `fn`. `name` must outlive the engine. False: the table
 * of functions is full. */
bool xm_fake_kernel(struct xm_engine *engine, const char *name, xm_fake_fn fn, void *ctx);
/* The host address of the buffer in argument `i` of a launch; NULL for a null buffer or another
 * kind of argument. */
void *xm_fake_bytes(const struct xm_fake_launch *launch, uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
