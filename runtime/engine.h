/* SPDX-License-Identifier: Apache-2.0
 *
 * A device to run kernels on: one ops struct, several implementations.
 *
 *   engine    one device with its context; refcounted; thread-safe
 *   buffer    device memory, or a view into another buffer; refcounted
 *   kernel    one built kernel (source file + defines); owned by the engine's cache
 *   queue     an in-order command queue; one thread at a time
 *
 * ocl/ runs on OpenCL, fake/ in tests. Only those folders know a driver's types.
 */
#ifndef XM_RUNTIME_ENGINE_H
#define XM_RUNTIME_ENGINE_H

#include "runtime/config.h"
#include "runtime/device_info.h"
#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_engine;
struct xm_buffer;
struct xm_kernel;
struct xm_queue;

/* Kinds of memory; struct xm_memory_stats counts each separately. */
enum xm_memory_kind {
    XM_MEMORY_CL,      /* cl_mem                                             */
    XM_MEMORY_CL_HOST, /* cl_mem that the driver keeps in host memory       */
    XM_MEMORY_USM_HOST,
    XM_MEMORY_USM_DEVICE,
    XM_MEMORY_USM_SHARED,
    XM_MEMORY_MAPPED, /* borrowed host bytes (a file's mapping): zero-copy   */
    XM_MEMORY_KIND_COUNT
};
const char *xm_memory_kind_text(enum xm_memory_kind kind); /* "cl_mem", "usm_host", … */

/* The purpose of a buffer; the engine chooses the kind of memory by it. */
enum xm_buffer_use {
    XM_USE_DEVICE, /* only kernels access it (copies in and out are allowed)           */
    XM_USE_HOST,   /* the host writes or reads it often (inputs, outputs, block tables) */
    XM_USE_WEIGHT, /* written once; may be the host's bytes, read in place             */
    XM_USE_HOST_WEIGHT, /* written once; kernels read it in host memory                */
    XM_USE_OWN_WEIGHT   /* written once; always a copy of the host's bytes             */
};

/* One kernel argument. A scalar is copied at the call. TOO_LARGE: the number value.u64 does not fit
 * into the kernel's parameter, so xm_queue_run fails. */
enum xm_arg_kind { XM_ARG_BUFFER, XM_ARG_SCALAR, XM_ARG_LOCAL, XM_ARG_TOO_LARGE };
struct xm_arg {
    enum xm_arg_kind kind;
    const struct xm_buffer *buffer; /* BUFFER; NULL passes a null pointer             */
    uint32_t bytes;                 /* SCALAR: 4, 8 or 16; LOCAL: size of local memory */
    const char *name, *suffix; /* expected name of the parameter; NULL: not checked   */
    union {
        int32_t i32;
        uint32_t u32;
        float f32;
        int64_t i64;
        uint64_t u64;
        uint32_t u32x4[4];
    } value;
};

static inline struct xm_arg
xm_arg_buffer(const struct xm_buffer *b)
{
    struct xm_arg a = {XM_ARG_BUFFER, b, 0, 0, 0, {0}};
    return a;
}

/* For a uint or an int parameter (kernels use both for sizes); so v is at most INT32_MAX. */
static inline struct xm_arg
xm_arg_uint(uint64_t v)
{
    struct xm_arg a = {v > INT32_MAX ? XM_ARG_TOO_LARGE : XM_ARG_SCALAR, 0, 4, 0, 0, {0}};
    if (v > INT32_MAX)
        a.value.u64 = v;
    else
        a.value.i32 = (int32_t)v;
    return a;
}

static inline struct xm_arg
xm_arg_f32(float v)
{
    struct xm_arg a = {XM_ARG_SCALAR, 0, 4, 0, 0, {0}};
    a.value.f32 = v;
    return a;
}

static inline struct xm_arg
xm_arg_i64(int64_t v)
{
    struct xm_arg a = {XM_ARG_SCALAR, 0, 8, 0, 0, {0}};
    a.value.i64 = v;
    return a;
}

/* An argument for a uint4 parameter. */
static inline struct xm_arg
xm_arg_u32x4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    struct xm_arg a = {XM_ARG_SCALAR, 0, 16, 0, 0, {0}};
    a.value.u32x4[0] = x;
    a.value.u32x4[1] = y;
    a.value.u32x4[2] = z;
    a.value.u32x4[3] = w;
    return a;
}

static inline struct xm_arg
xm_arg_local(uint32_t bytes)
{
    struct xm_arg a = {XM_ARG_LOCAL, 0, bytes, 0, 0, {0}};
    return a;
}

static inline struct xm_arg
xm_arg_u64(uint64_t v)
{
    struct xm_arg a = {XM_ARG_SCALAR, 0, 8, 0, 0, {0}};
    a.value.u64 = v;
    return a;
}

/* Sizes of a launch, in work-items. 0 in the second and third dimension counts as 1. local[0] == 0:
 * the driver chooses the local size. */
struct xm_launch {
    uint64_t global[3];
    uint64_t local[3];
};

/* For each kind of memory: bytes now, most bytes so far, buffers so far. */
struct xm_memory_stats {
    uint64_t now[XM_MEMORY_KIND_COUNT];
    uint64_t peak[XM_MEMORY_KIND_COUNT];
    uint64_t buffers[XM_MEMORY_KIND_COUNT];
    uint64_t allocations; /* buffers of all kinds made so far                           */
    uint64_t total_now, total_peak; /* without MAPPED, which is the page cache          */
    uint64_t largest;               /* bytes of the largest buffer, MAPPED excluded     */
};

/* ---- engines -------------------------------------------------------------------- */

/* Returns the devices: Intel GPUs first, then other GPUs, CPU devices, others. *n is 0 if there is
 * no OpenCL platform (no error). The array is static. With XM_DEVICE_AS=<chip of devices.def> each
 * device has the facts of that chip. */
enum xm_status xm_engine_list(const struct xm_device_info **infos, size_t *n,
                              struct xm_error *err);

/* Opens device `index` of that list. The config is copied; unless it is final, the rules are
 * applied to the copy for this device, without a program. NULL: the defaults. */
enum xm_status xm_engine_create(size_t index, const struct xm_config *config,
                                struct xm_engine **out, struct xm_error *err);
/* An OpenCL context of the application, so that both can use each other's memory. */
struct xm_shared_cl {
    void *context; /* cl_context */
    /* cl_command_queue to which all queues of the engine enqueue; NULL: each creates its own */
    void *queue;
};
/* As xm_engine_create, in the application's context; retains the context and the queue. XM_INVALID:
 * the device is not in the context, the queue belongs to another device or context, or PERF_COUNT
 * is set and the queue has no profiling. `share` NULL: the engine creates a context. */
enum xm_status xm_engine_create_in(size_t index, const struct xm_config *config,
                                   const struct xm_shared_cl *share,
                                   struct xm_engine **out, struct xm_error *err);
/* Finds the device for xm_engine_create_in: the queue's or, without a queue, the n-th of the
 * context. Sets share->context to the queue's context if it is NULL. */
enum xm_status xm_engine_find_shared(struct xm_shared_cl *share, uint32_t n,
                                     size_t *index, struct xm_error *err);
/* Whether share->queue is out-of-order; if so the engine orders its commands with barriers. */
bool xm_shared_queue_is_out_of_order(const struct xm_shared_cl *share);
void xm_engine_ref(struct xm_engine *engine);
void xm_engine_unref(struct xm_engine *engine); /* NULL is allowed */

const struct xm_device_info *xm_engine_info(const struct xm_engine *engine);
const struct xm_config *xm_engine_config(const struct xm_engine *engine);
void xm_engine_memory_stats(const struct xm_engine *engine, struct xm_memory_stats *out);

/* Whether this is a counting engine (runtime/counting), which allocates and computes nothing. */
bool xm_engine_only_counts(const struct xm_engine *engine);

/* Whether a call on the device has failed with XM_LOST. After that every call that would reach the
 * device fails at once with that first failure; objects can still be destroyed. */
bool xm_engine_is_lost(const struct xm_engine *engine);

/* The cl_context and cl_device_id of an OpenCL engine, for interop; NULL on other engines. */
void *xm_engine_cl_context(const struct xm_engine *engine);
void *xm_engine_cl_device(const struct xm_engine *engine);
/* Whether the application can use USM of this engine, and the engine USM of the application. */
bool xm_engine_has_usm(const struct xm_engine *engine);

/* ---- buffers -------------------------------------------------------------------- */

/* Allocates device memory of `n` bytes (> 0), contents undefined. XM_NO_MEMORY: `n` is over the
 * device's largest allocation, or the driver has no memory left; the message has both sizes. */
enum xm_status xm_buffer_create(struct xm_engine *engine, enum xm_buffer_use use,
                                uint64_t n, struct xm_buffer **out, struct xm_error *err);
/* Makes a buffer of a weight from host bytes at any alignment. If xm_engine_shares_weight returns
 * true (CPU devices; integrated GPUs with aligned bytes; not with XM_COPY_WEIGHTS), kernels read
 * the bytes in place, and they must stay valid and unchanged until the buffer is freed. Otherwise
 * they are copied. xm_buffer_copy always copies. */
enum xm_status xm_buffer_from_host(struct xm_engine *engine, const void *p, uint64_t n,
                                   struct xm_buffer **out, struct xm_error *err);
bool xm_engine_shares_weight(struct xm_engine *engine, const void *bytes, uint64_t n);
enum xm_status xm_buffer_copy(struct xm_engine *engine, const void *bytes, uint64_t n,
                              struct xm_buffer **out, struct xm_error *err);
/* As xm_buffer_from_host, for a weight that stays in host memory: kernels read it in place if the
 * device can, even with XM_COPY_WEIGHTS; otherwise from a copy in host memory. */
enum xm_status xm_buffer_on_host(struct xm_engine *engine, const void *bytes, uint64_t n,
                                 struct xm_buffer **out, struct xm_error *err);
/* Allocates memory that the application may use in the engine's OpenCL context. `kind` is
 * XM_MEMORY_CL, XM_MEMORY_USM_HOST or XM_MEMORY_USM_DEVICE. XM_UNSUPPORTED: the device lacks it. */
enum xm_status xm_buffer_create_shared(struct xm_engine *engine, enum xm_memory_kind kind,
                                       uint64_t bytes, struct xm_buffer **out,
                                       struct xm_error *err);
/* Makes a buffer of at least `bytes` that the application allocated in that context: a cl_mem
 * (XM_MEMORY_CL), which is retained, or a pointer to USM of any kind (XM_MEMORY_USM_SHARED), which
 * must outlive the buffer; the buffer then has the kind that the driver reports. */
enum xm_status xm_buffer_wrap(struct xm_engine *engine, enum xm_memory_kind kind,
                              void *native, uint64_t bytes, struct xm_buffer **out,
                              struct xm_error *err);
/* Makes a buffer of [offset, offset + bytes) of `parent`, which it keeps alive. The offset is a
 * multiple of xm_engine_info()->base_align. Views of views are allowed. */
enum xm_status xm_buffer_view(struct xm_buffer *parent, uint64_t offset, uint64_t bytes,
                              struct xm_buffer **out, struct xm_error *err);
void xm_buffer_ref(struct xm_buffer *b);
void xm_buffer_unref(struct xm_buffer *b); /* NULL is allowed */
uint64_t xm_buffer_bytes(const struct xm_buffer *b);
struct xm_engine *xm_buffer_engine(const struct xm_buffer *b);
enum xm_memory_kind xm_buffer_kind(const struct xm_buffer *b);
/* The address of the bytes on the host if there is one (host USM, mapped, memory of CPU devices),
 * else NULL. Valid only while no enqueued command accesses the bytes. */
void *xm_buffer_host_ptr(const struct xm_buffer *b);
/* The cl_mem (XM_MEMORY_CL, XM_MEMORY_CL_HOST) or the USM pointer (other kinds), for interop. */
void *xm_buffer_native(const struct xm_buffer *b);

/* ---- kernels -------------------------------------------------------------------- */

/* The kernel `name` (file kernels/cl/<name>.cl, function <name>) built with `defines` ("-DSG=16
 * -DGROUP=64", may be ""). Built once per engine and (name, defines); stored on disk if CACHE_DIR
 * is set and the driver returns binaries. XM_NOT_BUILT: the compiler refuses the kernel. The error
 * has the most telling line of the build log; the log's first lines are logged as a warning. A
 * refused kernel is compiled once: later calls fail at once with the same text. */
enum xm_status xm_engine_kernel(struct xm_engine *engine, const char *name,
                                const char *defines, struct xm_kernel **out,
                                struct xm_error *err);
/* Calls `fn` with the binary of each built kernel, as the cache on disk stores it; if `like` is not
 * NULL, only of kernels that the engine `like` has, too. No calls if the driver returns no
 * binaries, or if the driver keeps files (PoCL) and CACHE_DIR is not set. */
struct xm_kernel_key;
typedef enum xm_status (*xm_kernel_bytes_fn)(void *ctx, const struct xm_kernel_key *key,
                                             const void *bytes, size_t n,
                                             struct xm_error *err);
enum xm_status xm_engine_kernel_bytes(struct xm_engine *engine, struct xm_engine *like,
                                      xm_kernel_bytes_fn fn, void *ctx,
                                      struct xm_error *err);
/* Another source of such binaries, asked for kernels that the cache on disk lacks. The caller owns
 * the struct and keeps it valid until xm_engine_withdraw_kernels. */
struct xm_kernel_offer {
    /* Returns the binary of a key and its size; NULL: there is none. */
    const void *(*find)(void *ctx, const struct xm_kernel_key *key, size_t *n);
    void *ctx;
    struct xm_kernel_offer *next; /* used by the engine */
};
void xm_engine_offer_kernels(struct xm_engine *engine, struct xm_kernel_offer *offer);
void xm_engine_withdraw_kernels(struct xm_engine *engine, struct xm_kernel_offer *offer);
/* Number of kernels that the compiler has built, not counting those loaded from a cache. */
uint64_t xm_engine_kernels_built(const struct xm_engine *engine);

/* Totals of all builds of an engine. */
struct xm_build_stats {
    uint64_t built, loaded; /* kernels built by the compiler, loaded from the cache     */
    uint64_t launches;    /* compilations at a launch with a new local size            */
    uint64_t cache_bytes; /* written to the cache                                     */
    double seconds;       /* time of all builds and loads                             */
};
void xm_engine_build_stats(const struct xm_engine *engine, struct xm_build_stats *out);

/* Sets the function that is called before each build by the compiler. It gets the kernel's name,
 * the number k of the build in this process (kernels loaded from a cache count, too) and n, the
 * number of expected builds (0: not known). Calls do not overlap; none is running when
 * xm_build_watch returns. NULL: none. Process-wide; any thread; not from `fn`. */
typedef void (*xm_build_fn)(void *ctx, const char *kernel, uint64_t k, uint64_t n);
void xm_build_watch(xm_build_fn fn, void *ctx);
bool xm_build_is_watched(void);
/* Sets n to the builds of a program that was compiled on `counted`, a counting engine: its kernels
 * and, if the driver compiles at launches, its kinds of launches. */
void xm_engine_expect_builds(struct xm_engine *engine, const struct xm_engine *counted);
/* Call after that program was compiled on `engine`: reduces n to the builds that are left: kernels
 * that are built at first use, and launches of kernels that were not loaded from the cache. */
void xm_engine_expect_launches(struct xm_engine *engine, struct xm_engine *counted);

/* ---- queues --------------------------------------------------------------------- */

enum xm_status xm_queue_create(struct xm_engine *engine, struct xm_queue **out,
                               struct xm_error *err);
void xm_queue_destroy(struct xm_queue *q); /* waits for its commands; NULL is allowed */
struct xm_engine *xm_queue_engine(const struct xm_queue *q);

enum { XM_KERNEL_ARGS = 48 }; /* most arguments of a kernel     */

/* Enqueues a launch; does not wait. args[i] is bound to parameter i. XM_UNSUPPORTED: more than
 * XM_KERNEL_ARGS arguments. Errors name the kernel. */
enum xm_status xm_queue_run(struct xm_queue *q, struct xm_kernel *k,
                            const struct xm_arg *args, uint32_t n_args,
                            const struct xm_launch *launch, struct xm_error *err);
/* Enqueues a call of a host function: as a native kernel if the device has them; else waits for the
 * queue and calls it. The ctx_bytes bytes of ctx are copied. `name` (for measurements) must outlive
 * the queue. A function that fails fills its err; the next call that waits for the queue
 * (xm_queue_read, xm_queue_finish, xm_queue_keep_pace) fails with the first such error. */
typedef enum xm_status (*xm_host_fn)(void *ctx, struct xm_error *err);
enum xm_status xm_queue_run_host(struct xm_queue *q, const char *name, xm_host_fn fn,
                                 const void *ctx, size_t ctx_bytes, struct xm_error *err);
/* Copies between host and device memory. Write: `src` may be reused on return. Send does not wait:
 * `src` must not change until the queue has been waited for. Read waits for all commands before it;
 * `dst` is filled on return. */
enum xm_status xm_queue_write(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset,
                              const void *src, uint64_t bytes, struct xm_error *err);
enum xm_status xm_queue_send(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset,
                             const void *src, uint64_t bytes, struct xm_error *err);
enum xm_status xm_queue_read(struct xm_queue *q, const struct xm_buffer *src,
                             uint64_t offset, void *dst, uint64_t bytes,
                             struct xm_error *err);
enum xm_status xm_queue_copy(struct xm_queue *q, const struct xm_buffer *src,
                             uint64_t src_offset, struct xm_buffer *dst,
                             uint64_t dst_offset, uint64_t bytes, struct xm_error *err);
enum xm_status xm_queue_fill(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset,
                             uint8_t value, uint64_t bytes, struct xm_error *err);
enum xm_status xm_queue_flush(struct xm_queue *q, struct xm_error *err);
/* Waits for commands enqueued before its previous call: the device is never idle. Not counted. */
enum xm_status xm_queue_keep_pace(struct xm_queue *q, struct xm_error *err);
enum xm_status xm_queue_finish(struct xm_queue *q, struct xm_error *err);
/* Waits of the host so far (finish, read, a write that waited) and launches so far. */
void xm_queue_counts(const struct xm_queue *q, uint64_t *waits, uint64_t *kernels);

/* The cl_command_queue of an OpenCL engine, for interop; NULL on others. Call it before each use:
 * it also tells the engine that the application enqueues commands. */
void *xm_queue_native(struct xm_queue *q);

/* ---- measurements ---------------------------------------------------------------- */

/* Sets the label (the index of a program's step) under which later commands are measured. */
enum { XM_NO_LABEL = UINT32_MAX };
void xm_queue_label(struct xm_queue *q, uint32_t label);
/* Whether the queue measures its launches (PERF_COUNT or XM_DEBUG=times). */
bool xm_queue_measures(const struct xm_queue *q);

/* Times of the launches of one kernel under one label. Copies and fills on the device count as
 * kernels "copy" and "fill". */
struct xm_launch_times {
    uint32_t label;
    const char *kernel; /* lives as long as the engine                        */
    uint64_t runs, ns;
    /* launches without a time: over the limit between two waits, or refused by the driver */
    uint64_t unmeasured;
};
typedef void (*xm_profile_fn)(void *ctx, const struct xm_launch_times *t);
/* With PERF_COUNT: waits, then calls `fn` for each label and kernel with launches since the last
 * reset. Fails after these calls if the driver refused the times of some launches. Without
 * PERF_COUNT it does nothing. */
enum xm_status xm_queue_profile(struct xm_queue *q, xm_profile_fn fn, void *ctx,
                                struct xm_error *err);
void
xm_queue_reset_profile(struct xm_queue *q); /* resets the sums of xm_queue_profile      */
/* From now on adds the times of launches to `t`, too. `t` must outlive the queue; several queues
 * may share it. A queue that does not measure adds nothing. */
struct xm_label_times;
void xm_queue_share_times(struct xm_queue *q, struct xm_label_times *t);

/* One launch; times in nanoseconds of the device's clock. */
struct xm_launch_span {
    uint32_t label;
    const char *kernel;
    uint64_t queued, start, end;
};
enum { XM_TRACE_LAUNCHES = 1 << 17 };
typedef void (*xm_trace_fn)(void *ctx, const struct xm_launch_span *span);
/* Begins a trace: the queue keeps the last XM_TRACE_LAUNCHES launches, one by one. XM_INVALID: the
 * queue does not measure. */
enum xm_status xm_queue_begin_trace(struct xm_queue *q, struct xm_error *err);
/* Waits, then calls `fn` for each kept launch, oldest first; *dropped: how many were not kept. */
enum xm_status xm_queue_trace(struct xm_queue *q, xm_trace_fn fn, void *ctx,
                              uint64_t *dropped, struct xm_error *err);

/* Adds host work that replaced a launch, done while the queue was empty, to the measurements;
 * `start` and `end` in seconds of xm_now(). `name` must outlive the queue. */
void xm_queue_add_host(struct xm_queue *q, const char *name, double start, double end);
/* The commands enqueued by means of xm_queue_native between these calls are measured as one
 * launch. */
void xm_queue_begin_native(struct xm_queue *q);
void xm_queue_end_native(struct xm_queue *q, const char *name);

#ifdef __cplusplus
}
#endif
#endif
