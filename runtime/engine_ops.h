/* SPDX-License-Identifier: Apache-2.0
 *
 * What an implementation of runtime/engine.h provides: a table of callbacks, and objects that begin
 * with the structs below. For engine*.c, ocl/, counting/ and fake/ only.
 *
 * engine*.c check arguments, count references, keep the statistics and the table of built kernels;
 * an implementation calls its driver and nothing else. A callback that fails records an error and
 * frees what it made. A callback must not be NULL unless its comment allows it.
 */
#ifndef XM_RUNTIME_ENGINE_OPS_H
#define XM_RUNTIME_ENGINE_OPS_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/engine.h"
#include "runtime/launch_kind.h"
#include "runtime/util/hash_index.h"

/* What kernel_create reports besides its result. */
struct xm_build_report {
    bool compiled; /* the compiler ran: the kernel came from no cache */
    /* the build log of a refused kernel; engine_kernels.c frees it (xm_free); NULL: none */
    char *log;
};

struct xm_engine_ops {
    bool only_counts; /* see xm_engine_only_counts */
    /* Frees the engine. Called after its last reference was dropped; no buffer, kernel or queue of
     * it is left. */
    void (*destroy)(struct xm_engine *e);
    /* For interop; NULL: the engine has none. */
    void *(*cl_context)(const struct xm_engine *e);
    void *(*cl_device)(const struct xm_engine *e);
    bool (*has_usm)(const struct xm_engine *e); /* NULL: no */

    /* Allocates memory for b->bytes bytes on b->engine (both set) and sets b->kind, host, native.
     * Called by any thread, without locks. */
    enum xm_status (*buffer_create)(struct xm_buffer *b, enum xm_buffer_use use,
                                    struct xm_error *err);
    /* As buffer_create, with the contents `bytes`. If kernels read `bytes` in place, kind is
     * MAPPED. `use` is one of the weights' uses. */
    enum xm_status (*buffer_from_host)(struct xm_buffer *b, enum xm_buffer_use use,
                                       const void *bytes, struct xm_error *err);
    /* As buffer_create, but b->kind is set by the caller. NULL: the engine cannot share memory. */
    enum xm_status (*buffer_create_shared)(struct xm_buffer *b, struct xm_error *err);
    /* Makes a buffer of the application's memory b->native. The caller sets b->kind: XM_MEMORY_CL
     * or XM_MEMORY_USM_SHARED; the callback sets the actual kind, and host. NULL: the engine cannot
     * share memory. */
    enum xm_status (*buffer_wrap)(struct xm_buffer *b, struct xm_error *err);
    /* Makes a view: b->root, b->offset and b->bytes are set and checked. Sets b->native. */
    enum xm_status (*buffer_view)(struct xm_buffer *b, struct xm_error *err);
    /* Frees the memory that the buffer_ callbacks above allocated; engine_buffers.c frees the
     * struct. */
    void (*buffer_release)(struct xm_buffer *b);

    /* Builds kernel `name` with `defines` and fills *report, which is zeroed. XM_NOT_BUILT: the
     * compiler refuses it. The caller holds the engine's kernel lock: one build at a time. */
    enum xm_status (*kernel_create)(struct xm_engine *e, const char *name,
                                    const char *defines, struct xm_kernel **out,
                                    struct xm_build_report *report, struct xm_error *err);
    void (*kernel_destroy)(struct xm_kernel *k); /* frees the struct, too */
    /* Calls `fn` with the binary of a kernel as the cache on disk stores it, if there is one. NULL:
     * this engine has no binaries. The caller holds the kernel lock. */
    enum xm_status (*kernel_bytes)(struct xm_engine *e, struct xm_kernel *k,
                                   xm_kernel_bytes_fn fn, void *ctx,
                                   struct xm_error *err);

    enum xm_status (*queue_create)(struct xm_engine *e, struct xm_queue **out,
                                   struct xm_error *err);
    void (*queue_destroy)(struct xm_queue *q); /* waits; frees the struct */
    /* The callbacks below are called by one thread at a time for each queue; offsets and sizes
     * have been checked against the buffers. */
    enum xm_status (*run)(struct xm_queue *q, struct xm_kernel *k,
                          const struct xm_arg *args, uint32_t n_args,
                          const struct xm_launch *launch, struct xm_error *err);
    /* The calls of recordings. `bind` makes a kernel object with its own arguments, *out. `unbind`
     * frees it, also on a lost device. `run_bound` enqueues it on the same queue, with the same
     * kernel; `rebind` replaces argument i. `args` are not kept; the recording keeps the buffers
     * alive. All four NULL: the engine cannot record. */
    enum xm_status (*bind)(struct xm_queue *q, struct xm_kernel *k,
                           const struct xm_arg *args, uint32_t n_args, void **out,
                           struct xm_error *err);
    void (*unbind)(void *bound);
    enum xm_status (*rebind)(struct xm_queue *q, struct xm_kernel *k, void *bound,
                             uint32_t i, const struct xm_arg *arg, struct xm_error *err);
    enum xm_status (*run_bound)(struct xm_queue *q, struct xm_kernel *k, void *bound,
                                const struct xm_launch *launch, struct xm_error *err);
    /* Enqueues fn(a copy of the ctx_bytes bytes of ctx); fn stores its failure in the queue by
     * itself. */
    enum xm_status (*run_host)(struct xm_queue *q, const char *name, void (*fn)(void *),
                               const void *ctx, size_t ctx_bytes, struct xm_error *err);
    enum xm_status (*write)(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset,
                            const void *src, uint64_t bytes, struct xm_error *err);
    /* As xm_queue_send; NULL: `write` is called, which on such an engine takes effect at once. */
    enum xm_status (*send)(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset,
                           const void *src, uint64_t bytes, struct xm_error *err);
    enum xm_status (*read)(struct xm_queue *q, const struct xm_buffer *src,
                           uint64_t offset, void *dst, uint64_t bytes,
                           struct xm_error *err);
    enum xm_status (*copy)(struct xm_queue *q, const struct xm_buffer *src,
                           uint64_t src_offset, struct xm_buffer *dst,
                           uint64_t dst_offset, uint64_t bytes, struct xm_error *err);
    enum xm_status (*fill)(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset,
                           uint8_t value, uint64_t bytes, struct xm_error *err);
    enum xm_status (*flush)(struct xm_queue *q, struct xm_error *err);
    enum xm_status (*finish)(struct xm_queue *q, struct xm_error *err);
    /* As xm_queue_keep_pace; NULL: commands take effect at once, there is nothing to wait for. */
    enum xm_status (*keep_pace)(struct xm_queue *q, struct xm_error *err);
    /* The native queue for interop; NULL: none. */
    void *(*queue_native)(struct xm_queue *q);
    const struct xm_measuring_ops *measuring; /* NULL: the engine measures nothing */
};

/* The calls of measurements, for queues with `measures` set. `profile`, `begin_trace` and `trace`
 * are called only when the queue is finished. */
struct xm_measuring_ops {
    enum xm_status (*profile)(struct xm_queue *q, xm_profile_fn fn, void *ctx,
                              struct xm_error *err);
    void (*reset_profile)(struct xm_queue *q);
    void (*share_times)(struct xm_queue *q, struct xm_label_times *t);
    enum xm_status (*begin_trace)(struct xm_queue *q, struct xm_error *err);
    void (*trace)(struct xm_queue *q, xm_trace_fn fn, void *ctx, uint64_t *dropped);
    void (*add_host)(struct xm_queue *q, const char *name, double start, double end);
    void (*begin_native)(struct xm_queue *q);
    void (*end_native)(struct xm_queue *q, const char *name);
};

struct xm_engine {
    const struct xm_engine_ops *ops;
    atomic_uint refs;
    struct xm_device_info info;
    struct xm_config config;
    pthread_mutex_t stats_lock;
    struct xm_memory_stats stats;
    /* protects kernels, kernel_index, refused, offers, and builds */
    pthread_mutex_t kernel_lock;
    struct xm_kernel **kernels; /* owned; n_kernels */
    size_t n_kernels, kernel_capacity;
    struct xm_hash_index kernel_index; /* finds kernels by hash of name and defines */
    struct xm_refused_kernel *refused;
    struct xm_kernel_offer *offers;
    /* once set, `lost` does not change; both are set under stats_lock */
    atomic_bool is_lost;
    struct xm_error lost;
    atomic_uint_fast64_t kernels_built, kernels_loaded, launches_built, cache_bytes;
    /* the value that (kernels built by the process + kernels loaded by this engine + spared) has
     * when the last expected build is done */
    atomic_uint_fast64_t expected;
    /* expected builds that turned out unnecessary: launches of kernels loaded from the cache */
    atomic_uint_fast64_t spared;
    /* nanoseconds spent in builds, also those at a first launch */
    atomic_uint_fast64_t build_ns;
};

struct xm_buffer {
    struct xm_engine *engine; /* referenced                                        */
    atomic_uint refs;
    struct xm_buffer *root; /* of a view: the allocation it lies in, referenced    */
    uint64_t offset;        /* of a view: bytes from the start of the root         */
    uint64_t bytes;
    enum xm_memory_kind kind;
    void *host;      /* the host's pointer to the first byte, or NULL                  */
    void *native;    /* cl_mem, or the USM pointer                                     */
    bool is_shared;  /* the application may have enqueued commands that access it     */
    bool is_foreign; /* allocated by the application: not counted, not freed          */
    bool is_hidden;  /* allocated by the application without access for the host      */
};

struct xm_kernel {
    char *name, *defines; /* owned by engine_kernels.c                       */
    bool is_new;          /* built by the compiler, not loaded from a cache */
    /* The kinds of launches so far, if the driver compiles at launches, or the engine only
     * counts. */
    struct xm_launch_kinds launched;
};

/* A kernel that the compiler has refused: later requests fail with `why` and do not compile. */
struct xm_refused_kernel {
    struct xm_refused_kernel *next;
    char *name, *defines;
    struct xm_error why;
};

struct xm_queue {
    struct xm_engine *engine; /* referenced */
    uint64_t waits, kernels;
    uint32_t label;                 /* label of the commands that are enqueued now */
    bool measures;                  /* set by queue_create  */
    struct xm_recording *recording; /* launches are recorded to it; NULL: none */
    /* xm_queue_patch: the next launch replaces recorded launch patch_at, unless it is patch_end */
    bool is_patching;
    uint32_t patch_at, patch_end;
    /* Whether a host function has failed since the last wait. host_error is the first failure; it
     * is written before the flag is set. */
    atomic_bool has_host_error;
    struct xm_error host_error;
};

/* Initialises a new engine's struct xm_engine with one reference; config NULL: the defaults. If the
 * config is not final, the rules are applied for `info`. After a failure nothing has to be
 * undone. */
enum xm_status xm_engine_init(struct xm_engine *e, const struct xm_engine_ops *ops,
                              const struct xm_device_info *info,
                              const struct xm_config *config, struct xm_error *err);
/* Fails with XM_LOST if the device is lost. */
enum xm_status xm_engine_check_alive(const struct xm_engine *e, struct xm_error *err);
/* Returns `status`, the result of a call on the device, whose error is in err. If it is XM_LOST,
 * the device counts as lost from now on. */
enum xm_status xm_engine_settle(struct xm_engine *e, enum xm_status status,
                                struct xm_error *err);
/* recording.c: adds a launch that has been enqueued to the queue's recording, if there is one. */
void xm_queue_record_launch(struct xm_queue *q, struct xm_kernel *k,
                            const struct xm_arg *args, uint32_t n_args,
                            const struct xm_launch *launch);
/* Before a launch is enqueued: if the queue patches a recording and the launch fits the next
 * recorded one, updates its arguments and enqueues it. *done: whether that happened. */
enum xm_status xm_queue_run_patched(struct xm_queue *q, struct xm_kernel *k,
                                    const struct xm_arg *args, uint32_t n_args,
                                    const struct xm_launch *launch, bool *done,
                                    struct xm_error *err);
/* Counts a command that is enqueued while a recording is on and that it does not contain. */
void xm_queue_miss_command(struct xm_queue *q);
/* engine_queues.c: counts a launch; with XM_DEBUG=sync waits for it. */
enum xm_status xm_queue_launched(struct xm_queue *q, const struct xm_kernel *k,
                                 struct xm_error *err);
/* engine_kernels.c: frees the engine's kernels and its list of refused kernels. */
void xm_engine_free_kernels(struct xm_engine *e);
/* The binary of a key from the first offer that has it, or NULL; the caller holds the kernel
 * lock. */
const void *xm_engine_offered(const struct xm_engine *e, const struct xm_kernel_key *key,
                              size_t *n);
/* The engine's kernel of that name and defines, or NULL; the caller holds the kernel lock. */
struct xm_kernel *xm_engine_find_kernel(const struct xm_engine *e, const char *name,
                                        const char *defines);
/* Counts a build that begins and calls the function of xm_build_watch. */
void xm_engine_say_building(struct xm_engine *e, const char *kernel);
/* Undoes xm_engine_init; called by ops->destroy. */
void xm_engine_fini(struct xm_engine *e);

/* memory_kind.c: the kind of memory for a use; whether kernels read host bytes in place. */
enum xm_memory_kind xm_memory_kind_for(const struct xm_device_info *info,
                                       enum xm_buffer_use use);
bool xm_memory_is_shared(const struct xm_engine *e, enum xm_buffer_use use,
                         const void *bytes, uint64_t n_bytes);

/* ocl/: functions behind xm_engine_list, xm_engine_create_in, xm_engine_find_shared and
 * xm_shared_queue_is_out_of_order. */
enum xm_status xm_ocl_list(const struct xm_device_info **infos, size_t *n,
                           struct xm_error *err);
enum xm_status xm_ocl_engine_create(size_t index, const struct xm_config *config,
                                    const struct xm_shared_cl *share,
                                    struct xm_engine **out, struct xm_error *err);
enum xm_status xm_ocl_find_shared(struct xm_shared_cl *share, uint32_t n, size_t *index,
                                  struct xm_error *err);
bool xm_ocl_queue_is_out_of_order(void *queue);

#endif
