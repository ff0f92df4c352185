/* SPDX-License-Identifier: Apache-2.0
 *
 * A device to run kernels on: one ops struct, several implementations.
 *
 *   engine    one device with its context; refcounted; thread-safe
 *   buffer    device memory, or a view into another buffer; refcounted
 *   kernel    one built kernel (source file + defines); owned by the engine's cache
 *   queue     an in-order command queue; one thread at a time
 *
 * ocl/ runs on OpenCL, fake/ in tests. Only those folders know a driver's types. Callers
 * use the xm_engine_*, xm_buffer_* and xm_queue_* functions below, never the ops.
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

/* Where memory lies, and the rows of the statistics. */
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

/* What a buffer is for decides its kind; the engine knows which kind serves best. */
enum xm_buffer_use {
    XM_USE_DEVICE, /* only kernels touch it (copies in and out are allowed)            */
    XM_USE_HOST,   /* the host writes or reads it often (inputs, outputs, block tables) */
    XM_USE_WEIGHT, /* written once                                                     */
    XM_USE_HOST_WEIGHT /* written once, to be read from host memory                    */
};

/* One kernel argument. Views carry their offset; scalars are copied at the call. One that is
 * TOO_LARGE for its kernel (value.u64) makes xm_queue_run fail. */
enum xm_arg_kind { XM_ARG_BUFFER, XM_ARG_SCALAR, XM_ARG_LOCAL, XM_ARG_TOO_LARGE };
struct xm_arg {
    enum xm_arg_kind kind;
    const struct xm_buffer *buffer; /* BUFFER; NULL passes a null pointer             */
    uint32_t bytes;                 /* SCALAR: 4, 8 or 16; LOCAL: memory to reserve    */
    const char *name, *suffix; /* the kernel's parameter is <name><suffix>; NULL: any */
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

/* A uint or int of the kernel, which computes with both: at most INT32_MAX. */
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

/* A uint4. */
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

/* A launch: global and local size in work-items; 0 in the second and third dimension counts
 * as 1; local[0] == 0 leaves the local size to the driver. */
struct xm_launch {
    uint64_t global[3];
    uint64_t local[3];
};

/* Bytes per memory kind, now and at most so far, and buffers made so far. */
struct xm_memory_stats {
    uint64_t now[XM_MEMORY_KIND_COUNT];
    uint64_t peak[XM_MEMORY_KIND_COUNT];
    uint64_t buffers[XM_MEMORY_KIND_COUNT];
    uint64_t allocations; /* buffers of all kinds so far                                */
    uint64_t total_now, total_peak; /* MAPPED is not counted: it is the file's          */
    uint64_t largest;               /* of all buffers but MAPPED ones                   */
};

/* ---- engines -------------------------------------------------------------------- */

/* Devices in the order of preference: Intel GPUs, other GPUs, CPU devices, others.
 * *n is 0 when there is no OpenCL platform at all (not an error). The array is static
 * for the process. XM_DEVICE_AS=<row of devices.def> puts that chip's facts over each. */
enum xm_status xm_engine_list(const struct xm_device_info **infos, size_t *n,
                              struct xm_error *err);

/* Opens device `index` of that list. The config is copied, and finalised for the device
 * without a program when it is not yet; NULL means the defaults. */
enum xm_status xm_engine_create(size_t index, const struct xm_config *config,
                                struct xm_engine **out, struct xm_error *err);
/* An OpenCL context of somebody else's, so that his memory serves here and the engine's there. */
struct xm_shared_cl {
    void *context; /* cl_context */
    void *
        queue; /* cl_command_queue: what the engine's queues are; NULL: queues of their own */
};
/* The same in that context, which is retained, as the queue is. XM_INVALID: the device is not in
 * the context, the queue is another device's or another context's, or PERF_COUNT is wanted and the
 * queue does not measure. `share` NULL: a context of its own. */
enum xm_status xm_engine_create_in(size_t index, const struct xm_config *config,
                                   const struct xm_shared_cl *share,
                                   struct xm_engine **out, struct xm_error *err);
/* Which device of the list the queue has, or where there is no queue the context as its n-th. Fills
 * in the context where only a queue is given. */
enum xm_status xm_engine_find_shared(struct xm_shared_cl *share, uint32_t n,
                                     size_t *index, struct xm_error *err);
/* Whether commands of that queue may overtake each other. The engine's take effect in order. */
bool xm_shared_queue_is_out_of_order(const struct xm_shared_cl *share);
void xm_engine_ref(struct xm_engine *engine);
void xm_engine_unref(struct xm_engine *engine); /* NULL is allowed */

const struct xm_device_info *xm_engine_info(const struct xm_engine *engine);
const struct xm_config *xm_engine_config(const struct xm_engine *engine);
void xm_engine_memory_stats(const struct xm_engine *engine, struct xm_memory_stats *out);

/* Whether nothing is ever allocated or computed on this engine: runtime/counting. */
bool xm_engine_only_counts(const struct xm_engine *engine);

/* Whether a call on the device has said XM_LOST. From then on every call that would reach the
 * device fails at once with that first cause; objects can be destroyed as always. */
bool xm_engine_is_lost(const struct xm_engine *engine);

/* The cl_context, cl_device_id of an OpenCL engine for interop; NULL on others. */
void *xm_engine_cl_context(const struct xm_engine *engine);
void *xm_engine_cl_device(const struct xm_engine *engine);
/* Whether others can be given USM of the engine's, and theirs be taken. */
bool xm_engine_has_usm(const struct xm_engine *engine);

/* ---- buffers -------------------------------------------------------------------- */

/* Device memory of `bytes` (> 0), contents undefined. Refuses with XM_NO_MEMORY when it is over
 * the device's largest allocation or the driver has no more: the sentence has both sizes. */
enum xm_status xm_buffer_create(struct xm_engine *engine, enum xm_buffer_use use,
                                uint64_t bytes, struct xm_buffer **out,
                                struct xm_error *err);
/* A weight from host bytes at any alignment. On a device whose memory the host shares (CPU
 * devices) the bytes are used in place and must stay valid and unchanged until the buffer dies;
 * otherwise they are copied. */
enum xm_status xm_buffer_from_host(struct xm_engine *engine, const void *bytes,
                                   uint64_t n_bytes, struct xm_buffer **out,
                                   struct xm_error *err);
/* The same for a weight that is to stay out of the device's memory: kernels read it in host
 * memory, in place where they can, whatever XM_COPY_WEIGHTS says; otherwise it is a copy. */
enum xm_status xm_buffer_on_host(struct xm_engine *engine, const void *bytes,
                                 uint64_t n_bytes, struct xm_buffer **out,
                                 struct xm_error *err);
/* Memory of a kind that the caller names, for others to use in the engine's OpenCL context:
 * XM_MEMORY_CL, XM_MEMORY_USM_HOST or XM_MEMORY_USM_DEVICE. XM_UNSUPPORTED: the device has none. */
enum xm_status xm_buffer_create_shared(struct xm_engine *engine, enum xm_memory_kind kind,
                                       uint64_t bytes, struct xm_buffer **out,
                                       struct xm_error *err);
/* Memory of others in that context, of `bytes` at least: a cl_mem (XM_MEMORY_CL), which is
 * retained, or a pointer to USM of any kind (XM_MEMORY_USM_SHARED), which is to outlive the buffer;
 * its kind is then what the driver says. */
enum xm_status xm_buffer_wrap(struct xm_engine *engine, enum xm_memory_kind kind,
                              void *native, uint64_t bytes, struct xm_buffer **out,
                              struct xm_error *err);
/* [offset, offset + bytes) of `parent`, which it keeps alive. The offset is a multiple of
 * xm_engine_info()->base_align. Views of views are allowed. */
enum xm_status xm_buffer_view(struct xm_buffer *parent, uint64_t offset, uint64_t bytes,
                              struct xm_buffer **out, struct xm_error *err);
void xm_buffer_ref(struct xm_buffer *b);
void xm_buffer_unref(struct xm_buffer *b); /* NULL is allowed */
uint64_t xm_buffer_bytes(const struct xm_buffer *b);
struct xm_engine *xm_buffer_engine(const struct xm_buffer *b);
enum xm_memory_kind xm_buffer_kind(const struct xm_buffer *b);
/* The host's pointer to the bytes where there is one (host USM, mapped, CPU devices'
 * memory), else NULL. Contents are valid only while nothing enqueued touches them. */
void *xm_buffer_host_ptr(const struct xm_buffer *b);
/* The cl_mem, or the USM pointer, for interop; which of them follows from the kind. */
void *xm_buffer_native(const struct xm_buffer *b);

/* ---- kernels -------------------------------------------------------------------- */

/* The kernel `name` (file kernels/cl/<name>.cl, entry <name>) built with `defines`
 * ("-DSG=16 -DGROUP=64", may be ""). Built once per engine and (name, defines); cached on disk
 * with CACHE_DIR where the driver gives binaries. XM_NOT_BUILT: the compiler refuses it; the
 * text has the line of the build log that says most, the log's beginning goes to the log at
 * warning level. Both happen once: later calls fail at once with the same text. */
enum xm_status xm_engine_kernel(struct xm_engine *engine, const char *name,
                                const char *defines, struct xm_kernel **out,
                                struct xm_error *err);
/* What the driver has made of the kernels, as the cache on disk keeps it: calls `fn` for each that
 * `like`, an engine for which the same program was made, has too (NULL: for all). Nothing where the
 * driver gives nothing; of drivers that keep files (PoCL) only with CACHE_DIR. */
struct xm_kernel_key;
typedef enum xm_status (*xm_kernel_bytes_fn)(void *ctx, const struct xm_kernel_key *key,
                                             const void *bytes, size_t n,
                                             struct xm_error *err);
enum xm_status xm_engine_kernel_bytes(struct xm_engine *engine, struct xm_engine *like,
                                      xm_kernel_bytes_fn fn, void *ctx,
                                      struct xm_error *err);
/* Such bytes, for kernels that are built while the offer stands and are not on disk. The struct is
 * the caller's until he withdraws it. */
struct xm_kernel_offer {
    /* NULL: he has none of this key. */
    const void *(*find)(void *ctx, const struct xm_kernel_key *key, size_t *n);
    void *ctx;
    struct xm_kernel_offer *next; /* the engine's */
};
void xm_engine_offer_kernels(struct xm_engine *engine, struct xm_kernel_offer *offer);
void xm_engine_withdraw_kernels(struct xm_engine *engine, struct xm_kernel_offer *offer);
/* Kernels built so far by the compiler (not from a cache); for "nothing is compiled
 * after the first token" tests. */
uint64_t xm_engine_kernels_built(const struct xm_engine *engine);

/* What building has come to so far. */
struct xm_build_stats {
    uint64_t built, loaded; /* kernels: by the compiler, from the cache                 */
    uint64_t launches;      /* code that the driver made for the local size of a launch */
    uint64_t cache_bytes;   /* written to the cache                                     */
    double seconds;         /* all of it, loading too                                   */
};
void xm_engine_build_stats(const struct xm_engine *engine, struct xm_build_stats *out);

/* From now on `fn` is called before each kernel that the compiler builds, the k-th of the
 * process, of n that are expected (0: not known), one call at a time; fn NULL: no more, once this
 * returns. Process-wide; any thread, but not from `fn`, which may not ask xm_build_is_watched
 * either. */
typedef void (*xm_build_fn)(void *ctx, const char *kernel, uint64_t k, uint64_t n);
void xm_build_watch(xm_build_fn fn, void *ctx);
bool xm_build_is_watched(void);
/* A program is about to be made as it was made on `counted`, an engine that only counts: its
 * kernels are expected to be built, but those from the cache, and code for the launches that
 * `counted` has seen, where the driver makes code for launches. */
void xm_engine_expect_builds(struct xm_engine *engine, const struct xm_engine *counted);
/* It has been made: of the kernels that were built, not loaded, the launches are expected. */
void xm_engine_expect_launches(struct xm_engine *engine, struct xm_engine *counted);

/* ---- queues --------------------------------------------------------------------- */

enum xm_status xm_queue_create(struct xm_engine *engine, struct xm_queue **out,
                               struct xm_error *err);
void xm_queue_destroy(struct xm_queue *q); /* waits; NULL is allowed */
struct xm_engine *xm_queue_engine(const struct xm_queue *q);

enum { XM_KERNEL_ARGS = 48 }; /* arguments of a kernel, at most */

/* Enqueues; does not wait. Arguments are bound by position; the first XM_KERNEL_ARGS are read, and
 * more are XM_UNSUPPORTED. Errors name the kernel. */
enum xm_status xm_queue_run(struct xm_queue *q, struct xm_kernel *k,
                            const struct xm_arg *args, uint32_t n_args,
                            const struct xm_launch *launch, struct xm_error *err);
/* Enqueues a host function in queue order (a native kernel where the device has them; else
 * the queue is drained and it is called at once). `ctx_bytes` of ctx are copied. `name`, for
 * measurements, outlives the queue. One that fails says why in err; the queue's next wait
 * (xm_queue_read, xm_queue_finish) fails with the first such sentence. */
typedef enum xm_status (*xm_host_fn)(void *ctx, struct xm_error *err);
enum xm_status xm_queue_run_host(struct xm_queue *q, const char *name, xm_host_fn fn,
                                 const void *ctx, size_t ctx_bytes, struct xm_error *err);
/* Copies; host memory may be reused when the call returns (write) and is filled when it
 * returns (read: this waits for everything before it). */
enum xm_status xm_queue_write(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset,
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
/* For those who enqueue long runs and look between commands whether to go on: waits until the
 * device has done what had been enqueued when this was called last. Commands since then stay
 * enqueued, so that the device always has some. It is no wait of xm_queue_counts. */
enum xm_status xm_queue_keep_pace(struct xm_queue *q, struct xm_error *err);
enum xm_status xm_queue_finish(struct xm_queue *q, struct xm_error *err);
/* Host waits (finish, read, a write that had to wait) and kernels enqueued so far, for tests
 * and statistics. */
void xm_queue_counts(const struct xm_queue *q, uint64_t *waits, uint64_t *kernels);

/* The cl_command_queue of an OpenCL engine for interop; NULL on others. Ask anew before each
 * use: the queue then knows that there are commands which it did not enqueue itself. */
void *xm_queue_native(struct xm_queue *q);

/* ---- measurements ---------------------------------------------------------------- */

/* What is enqueued from now on has this label in measurements: a step's index. */
enum { XM_NO_LABEL = UINT32_MAX };
void xm_queue_label(struct xm_queue *q, uint32_t label);
/* Whether launches are measured at all: PERF_COUNT, XM_DEBUG=times. */
bool xm_queue_measures(const struct xm_queue *q);

/* Of the launches of one kernel under one label; copies and fills on the device are launches of
 * "copy" and "fill". */
struct xm_launch_times {
    uint32_t label;
    const char *kernel; /* lives as long as the engine                        */
    uint64_t runs, ns;
    uint64_t
        unmeasured; /* of the runs: too many between two waits, or refused by the driver */
};
typedef void (*xm_profile_fn)(void *ctx, const struct xm_launch_times *t);
/* With PERF_COUNT: waits, then calls `fn` for each label and kernel with runs since the last
 * reset. Fails, after that, when the driver refuses to say the times of some. Without PERF_COUNT:
 * does nothing. */
enum xm_status xm_queue_profile(struct xm_queue *q, xm_profile_fn fn, void *ctx,
                                struct xm_error *err);
void xm_queue_reset_profile(struct xm_queue *q); /* what has been waited for */
/* From now on the times of launches are added there, too; it outlives the queue, and several queues
 * may share it. Queues that do not measure add nothing. */
struct xm_label_times;
void xm_queue_share_times(struct xm_queue *q, struct xm_label_times *t);

/* A launch; nanoseconds of the device's clock. */
struct xm_launch_span {
    uint32_t label;
    const char *kernel;
    uint64_t queued, start, end;
};
enum { XM_TRACE_LAUNCHES = 1 << 17 };
typedef void (*xm_trace_fn)(void *ctx, const struct xm_launch_span *span);
/* From now on the last XM_TRACE_LAUNCHES launches are kept, one by one. XM_INVALID: the queue does
 * not measure. */
enum xm_status xm_queue_begin_trace(struct xm_queue *q, struct xm_error *err);
/* Waits, then calls `fn` for each that was kept, the oldest first; *dropped: how many were not. */
enum xm_status xm_queue_trace(struct xm_queue *q, xm_trace_fn fn, void *ctx,
                              uint64_t *dropped, struct xm_error *err);

/* For those who do a launch's work themselves while the queue is empty: from when to when of
 * xm_now(). `name` outlives the queue. */
void xm_queue_add_host(struct xm_queue *q, const char *name, double start, double end);
/* What the caller enqueues by xm_queue_native between these two is measured as one launch. */
void xm_queue_begin_native(struct xm_queue *q);
void xm_queue_end_native(struct xm_queue *q, const char *name);

#ifdef __cplusplus
}
#endif
#endif
