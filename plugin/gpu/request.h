/* SPDX-License-Identifier: Apache-2.0
 *
 * A request: the mutable side of a program. It has the inputs, the sequences of its batch (their
 * pages belong to the program, kv/kv_pool.h), buffers for activations, and a queue. One thread at a
 * time may use it; several requests of one program may run at once.
 *
 * A run does this: bind symbols from the inputs' shapes; cut a long prompt into chunks of `ubatch`
 * tokens; then for each chunk plan buffers for its sizes (plans are kept), reserve pages of the KV
 * cache, enqueue every step, and read the outputs, which is the only wait.
 */
#ifndef XM_PLUGIN_GPU_REQUEST_H
#define XM_PLUGIN_GPU_REQUEST_H

#include "plugin/gpu/intake.h"
#include "plugin/lower/program.h"
#include "plugin/stats.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_request;

/* Called after each step of a run, when the queue is empty; for `xemoe verify` and tensor dumps. */
typedef enum xm_status (*xm_step_hook)(struct xm_request *r, uint32_t step,
                                       const struct xm_operand *operands, void *ctx,
                                       struct xm_error *err);

/* Creates a request, which holds a reference to the program. */
enum xm_status xm_request_create(struct xm_program *p, struct xm_request **out,
                                 struct xm_error *err);
void xm_request_destroy(struct xm_request *r); /* NULL is allowed */

/* Sets an input. Its bytes are borrowed: they must stay valid until the run has ended. */
enum xm_status xm_request_set_input(struct xm_request *r, uint32_t input,
                                    const struct xm_host_tensor *t, struct xm_error *err);
/* Sets an input whose bytes are in a buffer of the program's OpenCL context; t->data is not used.
 * The request references the buffer until another tensor is set. When a run begins, inputs that the
 * host must read are copied to the host; other inputs are copied on the device. */
enum xm_status xm_request_set_remote_input(struct xm_request *r, uint32_t input,
                                           const struct xm_host_tensor *t,
                                           struct xm_buffer *b, struct xm_error *err);
/* Sets a buffer to which runs copy a result, too; NULL: none. A run fails if its result is larger
 * than the buffer. */
enum xm_status xm_request_set_remote_output(struct xm_request *r, uint32_t output,
                                            struct xm_buffer *b, struct xm_error *err);
/* Runs the program and waits until the run has ended. Padding at the beginning of rows, zeros of
 * the key mask, is left out if the program allows that; its results are zeros. XM_INVALID: the mask
 * shows a position that was padding in an earlier run. After a failure the states are as they were
 * before the run; states on the host are empty. */
enum xm_status xm_request_infer(struct xm_request *r, struct xm_error *err);
/* Runs the intake *f, rows of ids of any sequences of the program's pool, in place of the request's
 * own rows. Result 0 then has the wanted rows, in the order of the rows of *f. After a failure the
 * sequences are as they were before. */
enum xm_status xm_request_run_sequences(struct xm_request *r, struct xm_intake *f,
                                        struct xm_error *err);
/* Sets *t to a result of the last run, in memory of the request that is valid until the next run.
 * The first call reads the result from the device. From then on, runs read this result before they
 * end, which saves a second wait. A run that is cut into chunks always reads results with a row for
 * each token. */
enum xm_status xm_request_output(struct xm_request *r, uint32_t output,
                                 struct xm_host_tensor *t, struct xm_error *err);
/* Sets *t to element type and shape of a result of the last run, without reading it: t->data is
 * NULL. */
enum xm_status xm_request_describe_output(struct xm_request *r, uint32_t output,
                                          struct xm_host_tensor *t, struct xm_error *err);
void xm_request_reset(struct xm_request *r); /* empties all states */
/* Drops all positions from `past` on, so that the prefix before them can be reused. A program with
 * states on the host drops all positions; xm_request_past is then 0. */
void xm_request_truncate(struct xm_request *r, uint64_t past);
/* Positions that the states hold, padding included. */
uint64_t xm_request_past(const struct xm_request *r);
/* Stops a run before its next step. Any thread and a signal handler may call it. The run returns
 * XM_CANCELLED, and so does each later run until xm_request_resume is called, so that a cancel just
 * before a run begins is not lost. */
void xm_request_cancel(struct xm_request *r);
void xm_request_resume(struct xm_request *r);
/* For counting engines (runtime/counting), which compute nothing: from now on runs enqueue all
 * steps except host steps and exchanges with other ranks, so that the engine counts launches. */
void xm_request_enqueue_counted(struct xm_request *r);
/* From now on counts the work of steps (request_profile.h), without their times. */
enum xm_status xm_request_count_work(struct xm_request *r, struct xm_error *err);
/* From now on calls `fn` while a prompt runs, in the thread of the run, with the number of its
 * tokens that the device has completed; fn NULL: no more calls. */
void xm_request_watch(struct xm_request *r, xm_tokens_fn fn, void *ctx);
/* Calls `hook` after each step of later runs, in the thread of the run; NULL: none. */
void xm_request_set_hook(struct xm_request *r, xm_step_hook hook, void *ctx);
/* Reads an operand from the device into `out`, packed in its element type; waits for the queue. */
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
