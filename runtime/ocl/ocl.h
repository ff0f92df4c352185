/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenCL engine, internal to this folder.
 *
 *   ocl_error.c    a CL code to a status and a sentence
 *   ocl_devices.c  the list of devices with their facts
 *   ocl_engine.c   context and table of callbacks
 *   ocl_buffer.c   cl_mem or USM, host memory in place, views
 *   ocl_program.c  programs: sources, build logs, the cache on disk
 *   ocl_kernel.c   kernels and what is known of their arguments
 *   ocl_queue.c    launches, copies, host functions
 *   ocl_signals.c  what the driver may not do about signals
 *   ocl_share.c    contexts, queues and memory of others
 *   ocl_times.c    device times of kernels
 */
#ifndef XM_RUNTIME_OCL_OCL_H
#define XM_RUNTIME_OCL_OCL_H

#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <signal.h>

#include "runtime/engine_ops.h"
#include "runtime/kernel_cache.h"
#include "runtime/util/strbuf.h"

/* USM entry points; all NULL where the device has none. */
struct ocl_usm {
    clHostMemAllocINTEL_fn host_alloc;
    clDeviceMemAllocINTEL_fn device_alloc;
    clMemBlockingFreeINTEL_fn free;
    clSetKernelArgMemPointerINTEL_fn set_arg;
    clEnqueueMemcpyINTEL_fn memcpy;
    clEnqueueMemFillINTEL_fn fill;
    clGetMemAllocInfoINTEL_fn info;
};

struct ocl_engine {
    struct xm_engine base;
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    struct ocl_usm usm;
    /* somebody else's, what all queues are; NULL: each is its own */
    cl_command_queue shared;
    bool shared_measures, shared_is_out_of_order;
    cl_command_queue upload;     /* copies of weights                            */
    pthread_mutex_t upload_lock; /* one upload at a time                         */
};

/* What the kernel's text says of one argument, as far as the driver tells: Intel's driver
 * takes a scalar of the wrong size without a word. */
struct ocl_arg {
    char name[40];
    char type[24];
    bool known; /* kind is meant                                        */
    enum xm_arg_kind kind;
    uint32_t bytes; /* of a scalar of a built-in type; 0: any size          */
};

/* What was built or loaded. */
struct ocl_program {
    cl_program program;
    struct xm_kernel_key key;
    bool has_key; /* the driver gives its bytes, in one way or the other */
    bool on_disk; /* the cache has it, or is to */
    bool is_new;  /* built by the compiler, not loaded */
    /* With XM_CAP_DRIVER_FILES: the name of its folder among the driver's; "": not known. */
    char files[64];
    uint64_t n_files; /* how many files of that folder are in the cache */
};

/* A cl_kernel holds its arguments, so binding and enqueueing are one step under its lock:
 * kernels are shared by all queues of the engine. */
struct ocl_kernel {
    struct xm_kernel base;
    struct ocl_program program;
    cl_kernel kernel;
    cl_uint n_args;
    struct ocl_arg *args; /* n_args */
    bool named; /* the arguments of a launch were those that it takes, by name */
    pthread_mutex_t lock;
};

/* Whose time it is. The texts outlive the queue. */
struct ocl_launch_id {
    uint32_t label;
    const char *name, *defines;
};

/* Device times of what a queue has run. Zero-initialise. */
struct ocl_times {
    struct ocl_event *events; /* since the last wait */
    size_t n_events, events_capacity;
    struct ocl_total *totals; /* before that, by label and kernel */
    size_t n_totals, totals_capacity;
    /* the total that was looked up last: the next is most often behind it */
    size_t found;
    struct xm_label_times *shared; /* gets them, too; not owned; NULL: nobody does */
    uint64_t n_refused;            /* runs of which the driver does not say the time */
    cl_int refusal;                /* its code for the last of them */
    uint64_t n_lost;               /* runs for whose total there was no memory */
    struct xm_launch_span *trace;  /* [XM_TRACE_LAUNCHES], a ring; NULL: none is kept */
    uint64_t n_traced;             /* so far, also those that are dropped */
    uint64_t n_missing;            /* in the trace: what went unmeasured           */
    double host_ns;                /* xm_now() is so far ahead of the device's clock */
};

/* A device of the list. */
struct ocl_device {
    cl_platform_id platform;
    cl_device_id device;
};

static inline struct ocl_engine *
ocl_engine(const struct xm_engine *e)
{
    return (struct ocl_engine *)e;
}

/* Whether the bytes of `b` are a cl_mem (else a USM pointer). */
static inline bool
is_cl_mem(const struct xm_buffer *b)
{
    return b->kind == XM_MEMORY_CL || b->kind == XM_MEMORY_CL_HOST ||
           b->kind == XM_MEMORY_MAPPED;
}

/* What the process does about signals, as it was before a call of the driver whose compiler may
 * have handlers of its own: LLVM's takes Ctrl-\ and says nothing. */
enum { OCL_KEPT_SIGNALS = 3 };
struct ocl_handlers {
    struct sigaction before[OCL_KEPT_SIGNALS];
    bool watches_files;
};
void xm_ocl_keep_handlers(struct ocl_handlers *h);
void xm_ocl_restore_handlers(const struct ocl_handlers *h);

/* Threads that the driver makes in between, and the programs that they run, as PoCL's linker, do
 * not get Ctrl-C, which the terminal sends to all of them: the linker would die of it, and PoCL
 * abort for that. A thread inherits what is blocked, a program does from its thread. Handlers are
 * kept, too. */
struct ocl_signals {
    sigset_t before;
    struct ocl_handlers handlers;
};
void xm_ocl_keep_signals(struct ocl_signals *s);
void xm_ocl_restore_signals(const struct ocl_signals *s);

const char *xm_ocl_error_text(cl_int code); /* "CL_OUT_OF_RESOURCES", static */
/* "call gave CODE (-5): <what>"; out of memory and out of resources are XM_NO_MEMORY, a device
 * that is not available is XM_LOST. */
enum xm_status xm_ocl_fail(struct xm_error *err, cl_int code, const char *call,
                           const char *fmt, ...) XM_PRINTF(4, 5);
/* The same for calls that wait for the device: there, out of resources is what drivers say
 * after a hang, XM_LOST. */
enum xm_status xm_ocl_fail_wait(struct xm_error *err, cl_int code, const char *call,
                                const char *fmt, ...) XM_PRINTF(4, 5);

/* Handles of entry `index` of xm_ocl_list. */
const struct ocl_device *xm_ocl_device_at(size_t index);

/* ocl_share.c: e->context, and the queue where there is one; retained, for destroy_engine. */
enum xm_status xm_ocl_share(struct ocl_engine *e, const struct xm_shared_cl *share,
                            struct xm_error *err);
enum xm_status xm_ocl_buffer_create_shared(struct xm_buffer *b, struct xm_error *err);
enum xm_status xm_ocl_buffer_wrap(struct xm_buffer *b, struct xm_error *err);
/* Bytes of a cl_mem to or from host memory, which USM may be; by way of another where the owner of
 * this one keeps the host out. `event` NULL: none is wanted. */
struct ocl_transfer {
    cl_command_queue queue;
    const struct xm_buffer *buffer; /* a cl_mem */
    uint64_t offset, bytes;
    bool is_blocking, has_barriers; /* barriers keep the order of the queue */
    cl_event *event;
};
cl_int xm_ocl_read_mem(const struct ocl_transfer *t, void *to);
cl_int xm_ocl_write_mem(const struct ocl_transfer *t, const void *from);

/* A queue of the context with the properties of the config. */
enum xm_status xm_ocl_create_queue(struct ocl_engine *e, bool profiling,
                                   bool out_of_order, cl_command_queue *out,
                                   struct xm_error *err);

enum xm_status xm_ocl_buffer_create(struct xm_buffer *b, enum xm_buffer_use use,
                                    struct xm_error *err);
enum xm_status xm_ocl_buffer_from_host(struct xm_buffer *b, enum xm_buffer_use use,
                                       const void *bytes, struct xm_error *err);
enum xm_status xm_ocl_buffer_view(struct xm_buffer *b, struct xm_error *err);
void xm_ocl_buffer_release(struct xm_buffer *b);
/* USM of b->kind; and a failed allocation's sentence. */
enum xm_status xm_ocl_create_usm(struct xm_buffer *b, struct xm_error *err);
enum xm_status xm_ocl_fail_alloc(const struct xm_buffer *b, cl_int code, const char *call,
                                 struct xm_error *err);

/* Builds or loads; out is released by xm_ocl_program_release also on failure. */
enum xm_status xm_ocl_program_create(struct ocl_engine *e, const char *name,
                                     const char *defines, struct ocl_program *out,
                                     struct xm_build_report *report,
                                     struct xm_error *err);
void xm_ocl_program_release(struct ocl_program *p);
/* What the cache keeps of it, appended; false: there is nothing. */
bool xm_ocl_program_bytes(const struct ocl_engine *e, const struct ocl_program *p,
                          struct xm_strbuf *out);
/* Whether the driver has compiled more of it since the last call; stores that. */
bool xm_ocl_program_update(struct ocl_engine *e, struct ocl_program *p);

enum xm_status xm_ocl_kernel_create(struct xm_engine *e, const char *name,
                                    const char *defines, struct xm_kernel **out,
                                    struct xm_build_report *report, struct xm_error *err);
void xm_ocl_kernel_destroy(struct xm_kernel *k);
enum xm_status xm_ocl_kernel_bytes(struct xm_engine *e, struct xm_kernel *k,
                                   xm_kernel_bytes_fn fn, void *ctx,
                                   struct xm_error *err);

/* Room for an event; false: the launch goes unmeasured, which is counted. */
bool xm_ocl_times_reserve(struct ocl_times *t, const struct ocl_launch_id *id);
/* Takes over events for which room was reserved. `since` NULL: the launch is the event's command;
 * else it is all between the two. */
void xm_ocl_times_add(struct ocl_times *t, cl_event since, cl_event event,
                      const struct ocl_launch_id *id);
/* The same for what the host has done; nanoseconds of xm_now(). */
void xm_ocl_times_add_host(struct ocl_times *t, double start_ns, double end_ns,
                           const struct ocl_launch_id *id);
/* Sums the events, which have all ended. */
void xm_ocl_times_sum(struct ocl_times *t);
/* Hands out the sums since the last reset; fails, after that, when times are missing that the
 * driver has refused. */
enum xm_status xm_ocl_times_give(const struct ocl_times *t, xm_profile_fn fn, void *ctx,
                                 struct xm_error *err);
void xm_ocl_times_reset(struct ocl_times *t);
/* From now on launches are kept one by one; `marker` has ended at `host_ns` of xm_now(). */
enum xm_status xm_ocl_times_begin_trace(struct ocl_times *t, cl_event marker,
                                        double host_ns, struct xm_error *err);
void xm_ocl_times_trace(const struct ocl_times *t, xm_trace_fn fn, void *ctx,
                        uint64_t *dropped);
/* Prints the sums with XM_DEBUG=times; frees. */
void xm_ocl_times_end(struct ocl_times *t);

enum xm_status xm_ocl_queue_create(struct xm_engine *e, struct xm_queue **out,
                                   struct xm_error *err);
void xm_ocl_queue_destroy(struct xm_queue *q);
enum xm_status xm_ocl_queue_run(struct xm_queue *q, struct xm_kernel *k,
                                const struct xm_arg *args, uint32_t n_args,
                                const struct xm_launch *launch, struct xm_error *err);
enum xm_status xm_ocl_queue_run_host(struct xm_queue *q, const char *name,
                                     void (*fn)(void *), const void *ctx,
                                     size_t ctx_bytes, struct xm_error *err);
enum xm_status xm_ocl_queue_write(struct xm_queue *q, struct xm_buffer *dst,
                                  uint64_t offset, const void *src, uint64_t bytes,
                                  struct xm_error *err);
enum xm_status xm_ocl_queue_read(struct xm_queue *q, const struct xm_buffer *src,
                                 uint64_t offset, void *dst, uint64_t bytes,
                                 struct xm_error *err);
enum xm_status xm_ocl_queue_copy(struct xm_queue *q, const struct xm_buffer *src,
                                 uint64_t src_offset, struct xm_buffer *dst,
                                 uint64_t dst_offset, uint64_t bytes,
                                 struct xm_error *err);
enum xm_status xm_ocl_queue_fill(struct xm_queue *q, struct xm_buffer *dst,
                                 uint64_t offset, uint8_t value, uint64_t bytes,
                                 struct xm_error *err);
enum xm_status xm_ocl_queue_flush(struct xm_queue *q, struct xm_error *err);
enum xm_status xm_ocl_queue_keep_pace(struct xm_queue *q, struct xm_error *err);
enum xm_status xm_ocl_queue_finish(struct xm_queue *q, struct xm_error *err);
void *xm_ocl_queue_native(struct xm_queue *q);
extern const struct xm_measuring_ops xm_ocl_measuring;

#endif
