/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenCL engine, internal to this folder.
 *
 *   ocl_error.c    a CL code to a status and a sentence
 *   ocl_devices.c  the list of devices with their facts
 *   ocl_engine.c   context and table of callbacks
 *   ocl_buffer.c   cl_mem or USM, host memory in place, views
 *   ocl_program.c  programs: sources, build logs, the cache on disk
 *   ocl_kernel.c   kernels, and the types of their parameters
 *   ocl_queue.c    launches, copies, host functions
 *   ocl_tiles.c    asks for the permission to use the tiles of AMX
 *   ocl_signals.c  keeps signal masks and handlers across calls of the driver
 *   ocl_share.c    contexts, queues and memory of the application
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

/* The functions of the USM extension; all NULL if the device does not have all of them. */
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
    /* the application's queue, to which all queues of the engine enqueue; NULL: none */
    cl_command_queue shared;
    bool shared_measures, shared_is_out_of_order;
    cl_command_queue upload;     /* copies of weights                            */
    pthread_mutex_t upload_lock; /* one upload at a time                         */
};

/* A parameter of a kernel as its source declares it (clGetKernelArgInfo). Launches are checked
 * against it, because Intel's driver accepts a scalar of the wrong size without an error. */
struct ocl_arg {
    char name[40];
    char type[24];
    bool known; /* the driver has told kind and type; else not checked  */
    enum xm_arg_kind kind;
    uint32_t bytes; /* size of a scalar of a built-in type; 0: not checked  */
};

/* A program, built from its source or loaded from a binary. */
struct ocl_program {
    cl_program program;
    struct xm_kernel_key key;
    /* `key` is set: the cache can store the program, as a binary or as the driver's files */
    bool has_key;
    /* a cache folder is set: the program is loaded from it or stored there */
    bool on_disk;
    bool is_new; /* built by the compiler, not loaded */
    /* With XM_CAP_DRIVER_FILES: the name of the program's folder among the driver's files; "": not
     * known. */
    char files[64];
    uint64_t n_files; /* number of files in that folder when the cache stored them last */
};

/* A kernel. A cl_kernel object holds its arguments, so setting them and enqueueing is one step
 * under `lock`: all queues of the engine share the kernel. */
struct ocl_kernel {
    struct xm_kernel base;
    struct ocl_program program;
    cl_kernel kernel;
    cl_uint n_args;
    struct ocl_arg *args; /* n_args */
    /* a launch has passed the check that argument names are the parameters' names */
    bool named;
    pthread_mutex_t lock;
};

/* Under what a launch is measured. The texts outlive the queue. */
struct ocl_launch_id {
    uint32_t label;
    const char *name, *defines;
};

/* Device times of a queue's launches. Zero-initialise. */
struct ocl_times {
    struct ocl_event *events; /* launches since the last wait */
    size_t n_events, events_capacity;
    struct ocl_total *totals; /* sums of earlier events, by label and kernel */
    size_t n_totals, totals_capacity;
    /* index of the total that was found last: a search starts behind it, because runs repeat their
     * launches in the same order */
    size_t found;
    struct xm_label_times *shared; /* also gets the times; not owned; NULL: none     */
    uint64_t n_refused;            /* launches whose times the driver did not return */
    cl_int refusal;                /* the driver's code for the last of them */
    /* launches that are in no total, because there was no memory */
    uint64_t n_lost;
    struct xm_launch_span *trace; /* ring buffer [XM_TRACE_LAUNCHES]; NULL: no trace */
    /* launches since the trace began, overwritten ones included */
    uint64_t n_traced;
    uint64_t n_missing; /* launches without a time, not in the trace    */
    double host_ns;     /* xm_now() minus the device's clock, in ns     */
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

/* Saves the process's signal handlers before a call of the driver and restores them after it: LLVM
 * in the driver's compiler installs handlers of its own, which ignore SIGQUIT and others. */
enum { OCL_KEPT_SIGNALS = 6 };
struct ocl_handlers {
    struct sigaction before[OCL_KEPT_SIGNALS];
    bool watches_files;
};
void xm_ocl_keep_handlers(struct ocl_handlers *h);
void xm_ocl_restore_handlers(const struct ocl_handlers *h);

/* Blocks SIGINT in the calling thread between the two calls, and saves the handlers (struct
 * ocl_handlers). Threads that the driver creates meanwhile, and programs that these threads start
 * (PoCL's linker), inherit the mask. Otherwise Ctrl-C, which a terminal sends to the whole process
 * group, would end the linker, and PoCL would abort the process. */
struct ocl_signals {
    sigset_t before;
    struct ocl_handlers handlers;
};
void xm_ocl_keep_signals(struct ocl_signals *s);
void xm_ocl_restore_signals(const struct ocl_signals *s);
/* Asks the system, once in a process, for permission to use AMX tiles. If the system refuses,
 * clears the device's XM_CAP_AMX; XM_DEBUG=dispatch says why. */
void xm_ocl_ask_for_tiles(struct xm_device_info *device);

const char *xm_ocl_error_text(cl_int code); /* "CL_OUT_OF_RESOURCES", static */
/* Fails with "<call> gave <code> (<number>): <fmt>". Out of memory and out of resources become
 * XM_NO_MEMORY, a device that is not available XM_LOST, other codes XM_DEVICE. */
enum xm_status xm_ocl_fail(struct xm_error *err, cl_int code, const char *call,
                           const char *fmt, ...) XM_PRINTF(4, 5);
/* As xm_ocl_fail for calls that wait for the device: after a hang drivers report out of resources
 * there, so it becomes XM_LOST. */
enum xm_status xm_ocl_fail_wait(struct xm_error *err, cl_int code, const char *call,
                                const char *fmt, ...) XM_PRINTF(4, 5);

/* The OpenCL handles of device `index` of xm_ocl_list. */
const struct ocl_device *xm_ocl_device_at(size_t index);

/* ocl_share.c: makes the engine use the application's context and, if given, its queue. Both are
 * retained; the engine releases them when it is destroyed. */
enum xm_status xm_ocl_share(struct ocl_engine *e, const struct xm_shared_cl *share,
                            struct xm_error *err);
enum xm_status xm_ocl_buffer_create_shared(struct xm_buffer *b, struct xm_error *err);
enum xm_status xm_ocl_buffer_wrap(struct xm_buffer *b, struct xm_error *err);
/* A copy between a cl_mem and host memory or USM. If the application created the cl_mem without
 * host access, the copy goes through a temporary cl_mem. */
struct ocl_transfer {
    cl_command_queue queue;
    const struct xm_buffer *buffer; /* a cl_mem */
    uint64_t offset, bytes;
    /* the queue is out-of-order: barriers order its commands */
    bool is_blocking, has_barriers;
    cl_event *event; /* out; NULL: not wanted */
};
cl_int xm_ocl_read_mem(const struct ocl_transfer *t, void *to);
cl_int xm_ocl_write_mem(const struct ocl_transfer *t, const void *from);

/* Creates a command queue of the engine's context and device. */
enum xm_status xm_ocl_create_queue(struct ocl_engine *e, bool profiling,
                                   bool out_of_order, cl_command_queue *out,
                                   struct xm_error *err);

enum xm_status xm_ocl_buffer_create(struct xm_buffer *b, enum xm_buffer_use use,
                                    struct xm_error *err);
enum xm_status xm_ocl_buffer_from_host(struct xm_buffer *b, enum xm_buffer_use use,
                                       const void *bytes, struct xm_error *err);
enum xm_status xm_ocl_buffer_view(struct xm_buffer *b, struct xm_error *err);
void xm_ocl_buffer_release(struct xm_buffer *b);
/* xm_ocl_create_usm allocates USM of kind b->kind; xm_ocl_fail_alloc records the failure of an
 * allocation. */
enum xm_status xm_ocl_create_usm(struct xm_buffer *b, struct xm_error *err);
enum xm_status xm_ocl_fail_alloc(const struct xm_buffer *b, cl_int code, const char *call,
                                 struct xm_error *err);

/* Builds a program, or loads it from the cache. The caller calls xm_ocl_program_release on *out,
 * also after a failure. */
enum xm_status xm_ocl_program_create(struct ocl_engine *e, const char *name,
                                     const char *defines, struct ocl_program *out,
                                     struct xm_build_report *report,
                                     struct xm_error *err);
void xm_ocl_program_release(struct ocl_program *p);
/* Appends the bytes that the cache stores for a program: its binary, or the driver's files; false:
 * there are none. */
bool xm_ocl_program_bytes(const struct ocl_engine *e, const struct ocl_program *p,
                          struct xm_strbuf *out);
/* Returns whether the driver has compiled more code of the program since the last call (for new
 * kinds of launches); if so, stores the program in the cache again. */
bool xm_ocl_program_update(struct ocl_engine *e, struct ocl_program *p);

enum xm_status xm_ocl_kernel_create(struct xm_engine *e, const char *name,
                                    const char *defines, struct xm_kernel **out,
                                    struct xm_build_report *report, struct xm_error *err);
void xm_ocl_kernel_destroy(struct xm_kernel *k);
enum xm_status xm_ocl_kernel_bytes(struct xm_engine *e, struct xm_kernel *k,
                                   xm_kernel_bytes_fn fn, void *ctx,
                                   struct xm_error *err);

/* Makes room for an event. False: no memory; the launch is counted as unmeasured. */
bool xm_ocl_times_reserve(struct ocl_times *t, const struct ocl_launch_id *id);
/* Adds a launch after xm_ocl_times_reserve and takes ownership of its events. `since` NULL: the
 * launch is the command of `event`; else it is all commands after the marker `since` up to
 * `event`. */
void xm_ocl_times_add(struct ocl_times *t, cl_event since, cl_event event,
                      const struct ocl_launch_id *id);
/* Adds the time of work of the host, in nanoseconds of xm_now(), as a launch. */
void xm_ocl_times_add_host(struct ocl_times *t, double start_ns, double end_ns,
                           const struct ocl_launch_id *id);
/* Adds the times of the kept events, which have all ended, to the sums. */
void xm_ocl_times_sum(struct ocl_times *t);
/* Calls `fn` with each sum since the last reset. Then fails if the driver did not return the times
 * of some launches. */
enum xm_status xm_ocl_times_give(const struct ocl_times *t, xm_profile_fn fn, void *ctx,
                                 struct xm_error *err);
void xm_ocl_times_reset(struct ocl_times *t);
/* Begins a trace, which keeps single launches. `marker` is a completed event that ended at
 * `host_ns` of xm_now(), in ns: it relates the device's clock to the host's. */
enum xm_status xm_ocl_times_begin_trace(struct ocl_times *t, cl_event marker,
                                        double host_ns, struct xm_error *err);
void xm_ocl_times_trace(const struct ocl_times *t, xm_trace_fn fn, void *ctx,
                        uint64_t *dropped);
/* With XM_DEBUG=times prints the sums; frees the members of *t. */
void xm_ocl_times_end(struct ocl_times *t);

enum xm_status xm_ocl_queue_create(struct xm_engine *e, struct xm_queue **out,
                                   struct xm_error *err);
void xm_ocl_queue_destroy(struct xm_queue *q);
enum xm_status xm_ocl_queue_run(struct xm_queue *q, struct xm_kernel *k,
                                const struct xm_arg *args, uint32_t n_args,
                                const struct xm_launch *launch, struct xm_error *err);
enum xm_status xm_ocl_queue_bind(struct xm_queue *q, struct xm_kernel *k,
                                 const struct xm_arg *args, uint32_t n_args, void **out,
                                 struct xm_error *err);
enum xm_status xm_ocl_queue_rebind(struct xm_queue *q, struct xm_kernel *k, void *bound,
                                   uint32_t i, const struct xm_arg *arg,
                                   struct xm_error *err);
void xm_ocl_queue_unbind(void *bound);
enum xm_status xm_ocl_queue_run_bound(struct xm_queue *q, struct xm_kernel *k,
                                      void *bound, const struct xm_launch *launch,
                                      struct xm_error *err);
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
enum xm_status xm_ocl_queue_send(struct xm_queue *q, struct xm_buffer *dst,
                                 uint64_t offset, const void *src, uint64_t bytes,
                                 struct xm_error *err);
enum xm_status xm_ocl_queue_flush(struct xm_queue *q, struct xm_error *err);
enum xm_status xm_ocl_queue_keep_pace(struct xm_queue *q, struct xm_error *err);
enum xm_status xm_ocl_queue_finish(struct xm_queue *q, struct xm_error *err);
void *xm_ocl_queue_native(struct xm_queue *q);
extern const struct xm_measuring_ops xm_ocl_measuring;

#endif
