/* SPDX-License-Identifier: Apache-2.0
 *
 * A request: the mutable side of a program. Inputs, the sequences of its batch, whose pages are
 * the program's (kv/kv_pool.h), the activation block, a queue. Used by one thread at a time;
 * several requests of one program may run at once.
 *
 * One run: bind symbols from the inputs' shapes -> (cut the prompt into chunks of
 * `ubatch`) -> plan buffers for these sizes (kept from last time when nothing changed) ->
 * extend the cache -> enqueue every step -> read the outputs: the only wait.
 */
#ifndef XM_PLUGIN_GPU_REQUEST_H
#define XM_PLUGIN_GPU_REQUEST_H

#include "plugin/gpu/intake.h"
#include "plugin/gpu/program.h"
#include "plugin/stats.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_request;

/* Called after each step of a run, with the queue drained; for verify and tensor dumps.
 */
typedef enum xm_status (*xm_step_hook)(struct xm_request *r, uint32_t step,
                                       const struct xm_operand *operands, void *ctx,
                                       struct xm_error *err);

/* Creates a request, which holds a reference to the program. */
enum xm_status xm_request_create(struct xm_program *p, struct xm_request **out,
                                 struct xm_error *err);
void xm_request_destroy(struct xm_request *r); /* NULL is allowed */

/* Sets an input. The bytes are borrowed: they must stay valid until the run has ended. */
enum xm_status xm_request_set_input(struct xm_request *r, uint32_t input,
                                    const struct xm_host_tensor *t, struct xm_error *err);
/* The same from a buffer of the program's OpenCL context, which is referenced until another tensor
 * is set. Inputs that the host reads are copied to it when a run begins; others are copied on the
 * device. */
enum xm_status xm_request_set_remote_input(struct xm_request *r, uint32_t input,
                                           const struct xm_host_tensor *t,
                                           struct xm_buffer *b, struct xm_error *err);
/* Sets a buffer to which runs copy a result, too; NULL: none. A run fails if its result is larger
 * than the buffer. */
enum xm_status xm_request_set_remote_output(struct xm_request *r, uint32_t output,
                                            struct xm_buffer *b, struct xm_error *err);
/* Runs to the end. Rows that the key mask says to begin with padding run without it, where the
 * program allows that; its results are zeros. XM_INVALID: the mask shows what was padding in an
 * earlier run. After a failure the states are as they were before the run; states on the host are
 * empty. */
enum xm_status xm_request_infer(struct xm_request *r, struct xm_error *err);
/* Runs ids of any sequences of the program's pool in place of the request's own rows. The first
 * result has the rows that are wanted, of all rows of *f in their order. After a failure the
 * sequences are as they were. */
enum xm_status xm_request_run_sequences(struct xm_request *r, struct xm_intake *f,
                                        struct xm_error *err);
/* A result of the last run; *t points to memory of the request, valid until the next run. The first
 * call reads the result from the device; later runs read it before they end, which saves a second
 * wait. Results with a row for each token are also read by a run whose prompt is cut into
 * chunks. */
enum xm_status xm_request_output(struct xm_request *r, uint32_t output,
                                 struct xm_host_tensor *t, struct xm_error *err);
/* The same without reading the data: t->data is NULL. */
enum xm_status xm_request_describe_output(struct xm_request *r, uint32_t output,
                                          struct xm_host_tensor *t, struct xm_error *err);
void xm_request_reset(struct xm_request *r); /* empties all states */
/* Drops all positions from `past` on, so that the prefix before them can be reused. A program with
 * states on the host drops all positions; xm_request_past is then 0. */
void xm_request_truncate(struct xm_request *r, uint64_t past);
/* Positions that the states hold, padding included. */
uint64_t xm_request_past(const struct xm_request *r);
/* Stops a run between chunks and steps; from any thread, and from a signal's handler. The run
 * returns XM_CANCELLED, and so does each later one until xm_request_resume: a cancel that
 * comes just before a run begins is not lost. */
void xm_request_cancel(struct xm_request *r);
void xm_request_resume(struct xm_request *r);
/* For counting engines (runtime/counting), which compute nothing: from now on runs enqueue all
 * steps except host steps, so that the engine sees the launches. */
void xm_request_enqueue_counted(struct xm_request *r);
/* Counts the work of steps from now on (request_profile.h), without their times. */
enum xm_status xm_request_count_work(struct xm_request *r, struct xm_error *err);
/* From now on calls `fn` during a prompt, in the thread of the run, with the number of its tokens
 * that the device has completed; NULL: no call. */
void xm_request_watch(struct xm_request *r, xm_tokens_fn fn, void *ctx);
/* Calls `hook` after each step of later runs, in the thread of the run; NULL: none. */
void xm_request_set_hook(struct xm_request *r, xm_step_hook hook, void *ctx);
/* Reads a device operand into packed bytes of its element type (waits). */
enum xm_status xm_request_read(struct xm_request *r, const struct xm_operand *o,
                               void *out, struct xm_error *err);

/* The program; not referenced for the caller. */
struct xm_program *xm_request_program(struct xm_request *r);

/* Counts of the runs so far (plugin/plugin.h). */
void xm_request_stats(const struct xm_request *r, struct xm_request_stats *out);

/* The values of the symbols during a hook. */
const struct xm_binding *xm_request_bindings(const struct xm_request *r, uint32_t *n);

#ifdef __cplusplus
}
#endif
#endif
