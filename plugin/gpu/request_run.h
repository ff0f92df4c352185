/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a request: its struct, and the functions that the files request*.c share.
 */
#ifndef XM_PLUGIN_GPU_REQUEST_RUN_H
#define XM_PLUGIN_GPU_REQUEST_RUN_H

#include "plugin/bind.h"
#include "plugin/gpu/intake.h"
#include "plugin/gpu/request.h"
#include "plugin/gpu/request_profile.h"
#include "plugin/kv/kv_rows.h"
#include "runtime/pool.h"
#include "runtime/recording.h"
#include "transformations/graph/evaluate.h"

/* Plans that a request keeps: one for each power of two up to a chunk's tokens, and a few more. */
enum { XM_KEPT_PLANS = 12 };

/* The recorded launches of a step: launches first … first + n - 1 of xm_run_recording.launches, and
 * what the step adds to the request's counts. */
struct xm_recorded_step {
    bool is_recorded; /* false: the step is run without a recording */
    uint32_t first, n;
    uint64_t weight_bytes, multiply_adds;
};

/* The recording of a plan's runs that follow each other with the same sizes, as decoded tokens do:
 * request_recording.c. */
struct xm_run_recording {
    struct xm_bindings sizes; /* of the last run */
    uint32_t same; /* consecutive runs with these sizes, except `past`, less one */
    struct xm_recording *launches;  /* NULL: nothing is recorded */
    struct xm_recorded_step *steps; /* by step */
    bool is_recording;              /* the current run is being recorded */
    bool is_stale; /* some launches of the current run did not match the recorded ones */
};

/* Buffers for runs whose symbols have at most the values of `room`. */
struct xm_buffer_plan {
    struct xm_bindings room;
    struct xm_buffer **views; /* [value], no aliases: its bytes; NULL: no plan yet */
    uint64_t io_bytes;        /* of inputs, outputs and shape values                */
    uint64_t used;            /* n_runs at the last run that used it                */
    uint64_t past_changes; /* the request's past_changes when scratch was planned last */
    struct xm_run_recording recording;
};

/* An output of the last run. */
struct xm_result {
    struct xm_host_tensor tensor; /* its bytes are owned */
    enum { XM_RESULT_NONE, XM_RESULT_ON_DEVICE, XM_RESULT_READ } state;
    bool is_asked_for; /* the caller has read it: so later runs read it before they end */
};

/* An input or output in a remote tensor. */
struct xm_remote_io {
    struct xm_buffer *buffer; /* referenced; NULL: it is in no remote tensor */
    void *copy;               /* owned; bytes of an input that the host reads */
    uint64_t room;            /* bytes allocated for `copy`                  */
};

/* Host memory for the operand and the result of an exchange with other ranks. */
struct xm_exchange_place {
    uint8_t *bytes;
    uint64_t room; /* bytes allocated */
    bool is_sent;  /* a write to the device is enqueued that may still read `bytes` */
};

struct xm_request {
    struct xm_program *program;
    struct xm_queue *queue;
    struct xm_host_tensor *inputs;                       /* as set; bytes borrowed  */
    struct xm_remote_io *remote_inputs, *remote_outputs; /* by port */
    struct xm_intake intake;      /* of runs on the request's own rows */
    struct xm_host_tensor *chunk; /* inputs of a chunk: views of the run's or of `cut` */
    struct xm_host_tensor *cut;   /* owned; parts of inputs that were copied or made */
    struct xm_result *results;    /* by output */
    struct xm_bindings bindings;
    uint64_t *sizes;            /* [value] bytes, of the plan that is being made */
    struct xm_pool *pool;       /* of all buffers below */
    struct xm_buffer *scratch;  /* shared by all steps; NULL: none is needed */
    struct xm_kept_views views; /* of `scratch` */
    struct xm_buffer **blocks; /* [n_blocks] of activations; used by one plan at a time */
    uint32_t n_blocks;
    struct xm_buffer_plan plans[XM_KEPT_PLANS];
    struct xm_buffer_plan *plan; /* the current one */
    struct xm_kv_rows rows;
    struct xm_kv_tables *tables; /* NULL: no states */
    int32_t *most_past; /* [n_most_past]: past for which attention's scratch is planned */
    uint32_t most_room; /* entries allocated for most_past */
    uint32_t n_most_past;          /* sequences of the last run */
    uint64_t past_changes;         /* how often most_past has changed */
    bool can_pack;                 /* padding can be left out: request_padding.c */
    struct xm_host_tensor mask;    /* key mask without left-out padding; bytes owned */
    struct xm_state_store *states; /* host steps only */
    bool mask_is_full; /* the mask of this run hides no position that is stored */
    /* If results are computed for chosen rows only (xm_program.chosen_rows), and these rows are
     * consecutive: the first chosen row. Otherwise UINT64_MAX. */
    uint64_t first_chosen;
    bool cancelled; /* atomic                                               */
    struct {
        xm_tokens_fn fn; /* NULL: none */
        void *ctx;
        uint64_t done, all; /* tokens before the current chunk; tokens of the run */
    } watch;
    struct xm_exchange_place exchanges[2]; /* used in turn: request_collective.c */
    uint64_t n_exchanges;
    bool enqueues_counted; /* steps are enqueued even on a counting engine         */
    bool has_caches;       /* this run uses the program's expert caches            */
    uint64_t n_runs;
    xm_step_hook hook;
    void *hook_ctx;
    struct xm_request_stats stats;
    struct xm_step_sum *sums; /* by step; NULL: the work of steps is not counted */
};

/* request_plan.c: sets r->plan to a plan for the current bindings, kept or new. */
enum xm_status xm_request_make_plan(struct xm_request *r, struct xm_error *err);
void xm_request_free_plan(struct xm_request *r, struct xm_buffer_plan *plan);
uint64_t xm_request_activation_bytes(const struct xm_request *r);
/* Sets *out to the operand of a value under the current plan and bindings. */
void xm_request_operand(const struct xm_request *r, uint32_t value,
                        struct xm_operand *out);
/* Sets out[s->n_operands] to the operands of a step; attention's include the run's tables. */
void xm_request_operands(const struct xm_request *r, const struct xm_step *s,
                         struct xm_operand *out);

/* request_run.c: runs a chunk whose symbols are bound and whose pages are reserved: writes tables
 * and inputs, and enqueues every step. Does not wait. */
enum xm_status xm_request_run_chunk(struct xm_request *r,
                                    const struct xm_host_tensor *inputs,
                                    const struct xm_intake_chunk *chunk,
                                    struct xm_error *err);

/* Enqueues the steps of the last chunk once more; does not flush. The last chunk had one token of
 * each of these n sequences and may still be in the queue. The device changes its inputs to those
 * of the next tokens (primitives/choose), whose pages are reserved. The caller takes back what this
 * adds to the request's counts (xm_request_take_back), until the tokens are part of the
 * sequences. */
enum xm_status xm_request_run_again(struct xm_request *r,
                                    struct xm_kv_sequence *const *sequences, uint32_t n,
                                    struct xm_error *err);

/* request.c: counts of a request's runs. */
struct xm_run_counts {
    uint64_t kernels, waits, weight_bytes, multiply_adds;
};
/* Returns the totals so far; kernels and waits are those of the queue. */
struct xm_run_counts xm_request_counts(const struct xm_request *r);
/* Resets weight_bytes and multiply_adds of the request's statistics to *before, and returns what
 * was added to all counts since then, for a later call of xm_request_add. */
struct xm_run_counts xm_request_take_back(struct xm_request *r,
                                          const struct xm_run_counts *before);
/* Adds the counts of a run to the request's statistics; kernels and waits are replaced, because the
 * statistics have those of the last run. */
void xm_request_add(struct xm_request *r, const struct xm_run_counts *run);

/* request_intake.c: runs all chunks and waits for the last. Before the call the symbols are bound
 * to the sizes of the whole run. After a failure the sequences are as they were before, and states
 * on the host are empty. */
enum xm_status xm_request_run(struct xm_request *r, struct xm_intake *f,
                              struct xm_error *err);
/* Marks all results as having no value. */
void xm_request_forget_results(struct xm_request *r);

/* request.c: binds the symbols to the sizes of `inputs`, and the symbol `past`. */
enum xm_status xm_request_bind(struct xm_request *r, const struct xm_host_tensor *inputs,
                               uint64_t past, struct xm_error *err);
/* Call after the last chunk of a run. Copies results to the remote tensors that are set for them,
 * and reads the results that the caller has asked for after earlier runs; other results stay on the
 * device until the caller asks. *has_waited: whether the queue is empty now. */
enum xm_status xm_request_collect(struct xm_request *r, bool *has_waited,
                                  struct xm_error *err);

/* request_recording.c: returns whether the current run has the same sizes as the plan's last run,
 * except `past`. */
bool xm_request_is_alike(const struct xm_request *r, const struct xm_buffer_plan *plan);
/* Call before the steps of a run, with r->plan set: decides whether the launches of this run are
 * recorded, or those of an earlier run are replayed. */
void xm_request_begin_recording(struct xm_request *r);
/* Call after the steps. A run that has failed drops the plan's recording. */
void xm_request_end_recording(struct xm_request *r, bool has_succeeded);
/* Returns the recorded launches of a step if they are the same in this run; NULL: they are not, or
 * nothing is recorded. */
const struct xm_recorded_step *xm_request_recorded(const struct xm_request *r,
                                                   const struct xm_step *s);
/* Enqueues the recorded launches of a step, and counts its bytes and multiply-adds. */
enum xm_status xm_request_replay(struct xm_request *r, const struct xm_recorded_step *s,
                                 struct xm_error *err);
/* Runs a step by `run`. If this run is being recorded, records the step's launches; otherwise, if
 * the step is recorded, enqueues its recorded launches with the arguments that have changed. */
typedef enum xm_status (*xm_step_fn)(struct xm_request *r, const struct xm_step *s,
                                     struct xm_error *err);
enum xm_status xm_request_record(struct xm_request *r, const struct xm_step *s,
                                 xm_step_fn run, struct xm_error *err);
/* Frees the members of *rec and sets it to zero. */
void xm_request_free_recording(struct xm_run_recording *rec);

/* request_padding.c: rows of a batch that begin with padding, zeros of the key mask.
 * xm_request_can_pack: returns whether the program can run such rows without their padding. */
bool xm_request_can_pack(const struct xm_program *p);
/* Sets mask_is_full from the key mask of the run that begins. If rows begin with padding, and the
 * program can run without it, leaves it out of the intake. XM_INVALID: the mask shows a position
 * that was padding in an earlier run, and so is not stored. */
enum xm_status xm_request_read_mask(struct xm_request *r, struct xm_error *err);
/* Sets *out to the key mask of the positions that the rows' sequences store: each row of `mask`
 * without its first elements, those of left-out padding. *out is `mask` itself if there is no
 * padding, else a tensor of the request. */
enum xm_status xm_request_shift_mask(struct xm_request *r,
                                     const struct xm_host_tensor *mask,
                                     const struct xm_host_tensor **out,
                                     struct xm_error *err);

/* request_remote.c: copies inputs in remote tensors to the host: !all: those that the host reads in
 * every run; all: the other ones. Inputs that are not copied have data NULL. */
enum xm_status xm_request_fetch_inputs(struct xm_request *r, bool all,
                                       struct xm_error *err);
/* Enqueues a copy of input i from its remote tensor to the plan's buffer. */
enum xm_status xm_request_copy_input(struct xm_request *r, uint32_t i,
                                     struct xm_error *err);
/* Enqueues a copy of output i to its remote tensor. The run may still be in the queue. Does not
 * wait. */
enum xm_status xm_request_deliver(struct xm_request *r, uint32_t i, struct xm_error *err);
void xm_request_free_remote(struct xm_request *r);

/* request.c: makes the tensor's memory large enough for its shape; reallocates it if needed. */
enum xm_status xm_request_resize(struct xm_host_tensor *t, struct xm_error *err);
/* Returns output i as an operand, with its shape under the current bindings of symbols. Also sets
 * element type and shape of the output's host tensor. */
struct xm_operand xm_request_describe_result(struct xm_request *r, uint32_t i);

/* request_run.c: returns the tensor of the input called `name` among the inputs of a run; NULL:
 * `name` is NULL, or there is no such input. */
const struct xm_host_tensor *xm_request_input_named(const struct xm_request *r,
                                                    const struct xm_host_tensor *inputs,
                                                    const char *name);

/* request_collective.c: runs a step that exchanges values with the other ranks of a mesh. */
enum xm_status xm_request_run_collective(struct xm_request *r, const struct xm_step *s,
                                         struct xm_error *err);
/* request_host.c: evaluates the nodes of a host step with the host reference. */
enum xm_status xm_request_run_host(struct xm_request *r, const struct xm_step *s,
                                   struct xm_error *err);

#endif
