/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine implements: the table of callbacks behind runtime/engine.h, and the
 * common head of each object. For engine*.c, ocl/, counting/ and fake/ only.
 *
 * engine*.c check arguments, count references, keep the statistics and the table of
 * built kernels; an implementation calls its driver and nothing else. It embeds the
 * structs below as the first member of its own. A callback that fails records a sentence
 * and frees what it made. A callback must be there unless its comment allows NULL.
 */
#ifndef XM_RUNTIME_ENGINE_OPS_H
#define XM_RUNTIME_ENGINE_OPS_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/engine.h"
#include "runtime/launch_kind.h"
#include "runtime/util/hash_index.h"

/* Facts of a build besides its result. */
struct xm_build_report {
    bool compiled; /* the compiler ran: it was not in a cache */
    /* the build log of a refused kernel, owned by engine_kernels.c (xm_free); or NULL */
    char *log;
};

struct xm_engine_ops {
    bool only_counts; /* see xm_engine_only_counts */
    /* Frees the engine after its last reference was dropped; it has no buffer, kernel or queue. */
    void (*destroy)(struct xm_engine *e);
    /* For interop; NULL: the engine has none. */
    void *(*cl_context)(const struct xm_engine *e);
    void *(*cl_device)(const struct xm_engine *e);
    bool (*has_usm)(const struct xm_engine *e); /* NULL: no */

    /* Allocates; b->engine and b->bytes are set. Fills kind, host, native. Any thread,
     * no lock held. */
    enum xm_status (*buffer_create)(struct xm_buffer *b, enum xm_buffer_use use,
                                    struct xm_error *err);
    /* As buffer_create, with contents; kind MAPPED when the bytes are used in place. `use` is
     * XM_USE_WEIGHT or XM_USE_HOST_WEIGHT. */
    enum xm_status (*buffer_from_host)(struct xm_buffer *b, enum xm_buffer_use use,
                                       const void *bytes, struct xm_error *err);
    /* As buffer_create, of the kind that is set. NULL: the engine cannot share memory. */
    enum xm_status (*buffer_create_shared)(struct xm_buffer *b, struct xm_error *err);
    /* b->native is set, and b->kind: XM_MEMORY_CL or XM_MEMORY_USM_SHARED. Fills kind and host.
     * NULL: the engine cannot share memory. */
    enum xm_status (*buffer_wrap)(struct xm_buffer *b, struct xm_error *err);
    /* b->root, b->offset and b->bytes are set and checked. Fills native. */
    enum xm_status (*buffer_view)(struct xm_buffer *b, struct xm_error *err);
    /* Frees what the calls above allocated; engine_buffers.c frees the struct. */
    void (*buffer_release)(struct xm_buffer *b);

    /* Builds `name` with `defines` and fills the report, which is zeroed. XM_NOT_BUILT: the
     * compiler refuses it. The engine's kernel lock is held: one build at a time. */
    enum xm_status (*kernel_create)(struct xm_engine *e, const char *name,
                                    const char *defines, struct xm_kernel **out,
                                    struct xm_build_report *report, struct xm_error *err);
    void (*kernel_destroy)(struct xm_kernel *k); /* frees the struct, too */
    /* Calls `fn` with the binary that the cache on disk would keep of the kernel, if there is one.
     * NULL: there never is one. The kernel lock is held. */
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
    /* Binds the arguments to a kernel object of its own, *out, which `unbind` frees, also when the
     * device is lost. `args` are not kept; the recording holds the buffers. `run_bound` enqueues it
     * on the same queue, with the same kernel; `rebind` replaces argument i. All four NULL: the
     * engine cannot record. */
    enum xm_status (*bind)(struct xm_queue *q, struct xm_kernel *k,
                           const struct xm_arg *args, uint32_t n_args, void **out,
                           struct xm_error *err);
    void (*unbind)(void *bound);
    enum xm_status (*rebind)(struct xm_queue *q, struct xm_kernel *k, void *bound,
                             uint32_t i, const struct xm_arg *arg, struct xm_error *err);
    enum xm_status (*run_bound)(struct xm_queue *q, struct xm_kernel *k, void *bound,
                                const struct xm_launch *launch, struct xm_error *err);
    /* Calls fn(a copy of `bytes` of ctx) in queue order; fn reports failures by itself. */
    enum xm_status (*run_host)(struct xm_queue *q, const char *name, void (*fn)(void *),
                               const void *ctx, size_t ctx_bytes, struct xm_error *err);
    enum xm_status (*write)(struct xm_queue *q, struct xm_buffer *dst, uint64_t offset,
                            const void *src, uint64_t bytes, struct xm_error *err);
    /* As xm_queue_send; NULL: as write, which then takes effect at once. */
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
    /* As xm_queue_keep_pace; NULL: commands take effect at once. */
    enum xm_status (*keep_pace)(struct xm_queue *q, struct xm_error *err);
    /* The native queue for interop; NULL: none. */
    void *(*queue_native)(struct xm_queue *q);
    const struct xm_measuring_ops *measuring; /* NULL: the engine measures nothing */
};

/* Called only for queues that measure; profile and trace only when the queue is finished. */
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
    pthread_mutex_t kernel_lock; /* kernels and their index, refused, offers, building */
    struct xm_kernel **kernels;  /* owned; n_kernels */
    size_t n_kernels, kernel_capacity;
    struct xm_hash_index kernel_index; /* of kernels, by name and defines */
    struct xm_refused_kernel *refused;
    struct xm_kernel_offer *offers;
    atomic_bool is_lost; /* `lost` is written before it is set, under stats_lock */
    struct xm_error lost;
    atomic_uint_fast64_t kernels_built, kernels_loaded, launches_built, cache_bytes;
    /* the sum of kernels built by the process, kernels loaded by this engine and `spared` that is
     * reached with the last expected build */
    atomic_uint_fast64_t expected;
    /* of builds that were expected: launches of kernels that then were loaded from the cache */
    atomic_uint_fast64_t spared;
    atomic_uint_fast64_t build_ns; /* spent in builds, also those at a first launch */
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
    bool is_foreign; /* the application made it: it is neither counted nor freed      */
    bool is_hidden;  /* the application made it without host access                   */
};

struct xm_kernel {
    char *name, *defines; /* owned by engine_kernels.c                       */
    bool is_new;          /* built by the compiler, not loaded from a cache */
    /* Of drivers that compile at launches, and on engines that only count. */
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
    uint32_t label;                 /* of what is enqueued */
    bool measures;                  /* set by queue_create  */
    struct xm_recording *recording; /* of what is launched now; NULL: none */
    bool is_patching;               /* launches take the place of recorded ones: */
    uint32_t patch_at, patch_end;   /* of the next one, and the end of these */
    /* Set when a host function has failed since the last wait; host_error has the first failure and
     * is written before. */
    atomic_bool has_host_error;
    struct xm_error host_error;
};

/* Initialises the head of a new engine with one reference; config NULL: the defaults. The
 * config is finalised for `info` when it is not yet. On failure nothing is to be undone.
 */
enum xm_status xm_engine_init(struct xm_engine *e, const struct xm_engine_ops *ops,
                              const struct xm_device_info *info,
                              const struct xm_config *config, struct xm_error *err);
/* XM_LOST: the device is. */
enum xm_status xm_engine_check_alive(const struct xm_engine *e, struct xm_error *err);
/* Returns what a call on the device has returned, with its sentence in err. From XM_LOST on
 * the device is lost. */
enum xm_status xm_engine_settle(struct xm_engine *e, enum xm_status status,
                                struct xm_error *err);
/* recording.c: adds a launch, which has been enqueued, to the recording of the queue, if
 * there is one; counts that another command is enqueued, which is not recorded. */
void xm_queue_record_launch(struct xm_queue *q, struct xm_kernel *k,
                            const struct xm_arg *args, uint32_t n_args,
                            const struct xm_launch *launch);
/* The same before it is enqueued: *done, it was, in the place of a recorded one. */
enum xm_status xm_queue_run_patched(struct xm_queue *q, struct xm_kernel *k,
                                    const struct xm_arg *args, uint32_t n_args,
                                    const struct xm_launch *launch, bool *done,
                                    struct xm_error *err);
void xm_queue_miss_command(struct xm_queue *q);
/* engine_queues.c: counts a launch; with XM_DEBUG=sync waits for it. */
enum xm_status xm_queue_launched(struct xm_queue *q, const struct xm_kernel *k,
                                 struct xm_error *err);
/* engine_kernels.c: frees kernels and refusals. */
void xm_engine_free_kernels(struct xm_engine *e);
/* The binary that an offer has for a key, or NULL; the kernel lock is held. */
const void *xm_engine_offered(const struct xm_engine *e, const struct xm_kernel_key *key,
                              size_t *n);
/* A kernel that the engine has, or NULL; the kernel lock is held. */
struct xm_kernel *xm_engine_find_kernel(const struct xm_engine *e, const char *name,
                                        const char *defines);
/* Counts a build, and tells the function of xm_build_watch. */
void xm_engine_say_building(struct xm_engine *e, const char *kernel);
/* Undoes xm_engine_init; called by ops->destroy. */
void xm_engine_fini(struct xm_engine *e);

/* memory_kind.c: the kind of memory for a use, and whether host bytes are used in place. */
enum xm_memory_kind xm_memory_kind_for(const struct xm_device_info *info,
                                       enum xm_buffer_use use);
bool xm_memory_is_shared(const struct xm_engine *e, enum xm_buffer_use use,
                         const void *bytes, uint64_t n_bytes);

/* ocl/: what xm_engine_list and xm_engine_create call. */
enum xm_status xm_ocl_list(const struct xm_device_info **infos, size_t *n,
                           struct xm_error *err);
enum xm_status xm_ocl_engine_create(size_t index, const struct xm_config *config,
                                    const struct xm_shared_cl *share,
                                    struct xm_engine **out, struct xm_error *err);
enum xm_status xm_ocl_find_shared(struct xm_shared_cl *share, uint32_t n, size_t *index,
                                  struct xm_error *err);
bool xm_ocl_queue_is_out_of_order(void *queue);

#endif
