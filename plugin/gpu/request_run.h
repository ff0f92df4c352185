/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a request: its struct, and what the files request*.c call of each other.
 */
#ifndef XM_PLUGIN_GPU_REQUEST_RUN_H
#define XM_PLUGIN_GPU_REQUEST_RUN_H

#include "plugin/bind.h"
#include "plugin/gpu/intake.h"
#include "plugin/gpu/kv/kv_rows.h"
#include "plugin/gpu/request.h"
#include "plugin/gpu/request_profile.h"
#include "runtime/pool.h"
#include "runtime/recording.h"
#include "transformations/graph/evaluate.h"

/* Plans that a request keeps: one for each power of two up to a chunk's tokens, and a few more. */
enum { XM_KEPT_PLANS = 12 };

/* What a step of a recorded run has launched, and has added to the request's counts. */
struct xm_recorded_step {
    bool is_recorded; /* else the step is run anew */
    uint32_t first, n;
    uint64_t weight_bytes, multiply_adds;
};

/* Launches of runs of one plan that follow each other with the same sizes, as decoded tokens do:
 * request_recording.c. */
struct xm_run_recording {
    struct xm_bindings sizes; /* of the last run */
    uint32_t same;            /* runs before it with these, but for `past`, in a row */
    struct xm_recording *launches;  /* NULL: there are none */
    struct xm_recorded_step *steps; /* by step */
    bool is_recording;
    bool is_stale; /* some launches of this run did not fit those that are recorded */
};

/* Buffers for runs whose symbols have at most the values of `room`. */
struct xm_buffer_plan {
    struct xm_bindings room;
    struct xm_buffer **views; /* by value: its bytes (roots only); NULL: empty slot */
    uint64_t io_bytes;        /* of inputs, outputs and shape values                */
    uint64_t used;            /* n_runs at the last run that used it                */
    uint64_t past_changes;    /* the request's, when scratch was planned last         */
    struct xm_run_recording recording;
};

/* An output of the last run. */
struct xm_result {
    struct xm_host_tensor tensor; /* its bytes are owned */
    enum { XM_RESULT_NONE, XM_RESULT_ON_DEVICE, XM_RESULT_READ } state;
    bool is_asked_for; /* the caller has read it: later runs read it before they end */
};

/* An input or output in a remote tensor. */
struct xm_remote_io {
    struct xm_buffer *buffer; /* referenced; NULL: it is in no remote tensor */
    void *copy;               /* owned; an input's bytes for host steps      */
    uint64_t room;            /* bytes allocated for `copy`                  */
};

/* Memory of the host that an exchange is shown from. */
struct xm_exchange_place {
    uint8_t *bytes;
    uint64_t room;
    bool is_sent; /* to the device, which may not have read it yet */
};

struct xm_request {
    struct xm_program *program;
    struct xm_queue *queue;
    struct xm_host_tensor *inputs;                       /* as set; bytes borrowed  */
    struct xm_remote_io *remote_inputs, *remote_outputs; /* by port */
    struct xm_intake intake;      /* of runs on the request's own rows */
    struct xm_host_tensor *chunk; /* inputs of a chunk: views of the run's or of `cut` */
    struct xm_host_tensor *cut;   /* parts that are not contiguous in an input; owned */
    struct xm_result *results;    /* by output */
    struct xm_bindings bindings;
    uint64_t *sizes;            /* by value, of the plan that is being made */
    struct xm_pool *pool;       /* of all buffers below */
    struct xm_buffer *scratch;  /* shared by all steps; NULL: none is needed */
    struct xm_kept_views views; /* of it */
    struct xm_buffer **blocks;  /* activations; used by one plan at a time */
    uint32_t n_blocks;
    struct xm_buffer_plan plans[XM_KEPT_PLANS];
    struct xm_buffer_plan *plan; /* the current one */
    struct xm_kv_rows rows;
    struct xm_kv_tables *tables; /* NULL: no states */
    int32_t *most_past;   /* by sequence: past for which attention's scratch is planned */
    uint32_t most_room;   /* entries allocated for most_past */
    uint32_t n_most_past; /* sequences of the last run */
    uint64_t past_changes;         /* how often most_past has changed */
    bool can_pack;                 /* padding can be left out: request_padding.c */
    struct xm_host_tensor mask;    /* key mask of the cached positions; bytes owned */
    struct xm_state_store *states; /* host steps only */
    bool mask_is_full; /* the mask of this run hides no cached position         */
    /* If results are of chosen rows only (xm_program.chosen_rows) and these are consecutive: the
     * first of them. UINT64_MAX: they are not. */
    uint64_t first_chosen;
    bool cancelled; /* atomic                                               */
    struct {
        xm_tokens_fn fn; /* NULL: none */
        void *ctx;
        uint64_t done, all; /* tokens before the current chunk; tokens of the run */
    } watch;
    struct xm_exchange_place exchanges[2]; /* used in turn: request_collective.c */
    uint64_t n_exchanges;
    bool enqueues_counted; /* steps on an engine that only counts                  */
    bool has_caches;       /* this run uses the program's expert caches            */
    uint64_t n_runs;
    xm_step_hook hook;
    void *hook_ctx;
    struct xm_request_stats stats;
    struct xm_step_sum *sums; /* by step; NULL: without PERF_COUNT */
};

/* request_plan.c: r->plan for the current bindings. */
enum xm_status xm_request_make_plan(struct xm_request *r, struct xm_error *err);
void xm_request_free_plan(struct xm_request *r, struct xm_buffer_plan *plan);
uint64_t xm_request_activation_bytes(const struct xm_request *r);
/* The operand of a value under the current plan and bindings; all operands of a step, in its
 * order, of attention with the tables of the run. */
void xm_request_operand(const struct xm_request *r, uint32_t value,
                        struct xm_operand *out);
void xm_request_operands(const struct xm_request *r, const struct xm_step *s,
                         struct xm_operand *out);

/* request_run.c: everything between bound inputs and enqueued outputs, for a chunk whose pages are
 * reserved. */
enum xm_status xm_request_run_chunk(struct xm_request *r,
                                    const struct xm_host_tensor *inputs,
                                    const struct xm_intake_chunk *chunk,
                                    struct xm_error *err);

/* Enqueues the steps of the last chunk once more, which was a token of each of these n sequences
 * and may go on still; does not flush. The device has changed its inputs to those of the next
 * tokens (primitives/choose), whose pages are reserved. What that adds to the request's counts can
 * be taken back, until it is known that the tokens are part of the sequences. */
enum xm_status xm_request_run_again(struct xm_request *r,
                                    struct xm_kv_sequence *const *sequences, uint32_t n,
                                    struct xm_error *err);

/* request.c: what runs have added to the counts so far, of kernels and waits all of the queue's.
 * Taking back leaves it to the caller to add what was added since `before`, as that of the last
 * run. */
struct xm_run_counts {
    uint64_t kernels, waits, weight_bytes, multiply_adds;
};
struct xm_run_counts xm_request_counts(const struct xm_request *r);
struct xm_run_counts xm_request_take_back(struct xm_request *r,
                                          const struct xm_run_counts *before);
void xm_request_add(struct xm_request *r, const struct xm_run_counts *run);

/* request_intake.c: runs all chunks and waits for the last; the symbols have the values of the
 * whole run. After a failure the sequences are as they were, and states on the host empty. */
enum xm_status xm_request_run(struct xm_request *r, struct xm_intake *f,
                              struct xm_error *err);
void xm_request_forget_results(struct xm_request *r);

/* request.c: gives the symbols their values. */
enum xm_status xm_request_bind(struct xm_request *r, const struct xm_host_tensor *inputs,
                               uint64_t past, struct xm_error *err);
/* The last chunk of a run: results that are not read yet stay on the device until somebody asks, or
 * are read or copied now, where somebody did. *has_waited: for all that is in the queue. */
enum xm_status xm_request_collect(struct xm_request *r, bool *has_waited,
                                  struct xm_error *err);

/* request_recording.c: whether the run at hand has the sizes of the plan's last one, but for
 * `past`. */
bool xm_request_is_alike(const struct xm_request *r, const struct xm_buffer_plan *plan);
/* Call before the steps of a run, with r->plan set: decides whether this run is recorded, or
 * replays an earlier one. */
void xm_request_begin_recording(struct xm_request *r);
/* Call after the steps. A run that has failed drops the plan's recording. */
void xm_request_end_recording(struct xm_request *r, bool has_succeeded);
/* What a step launched in an earlier run, where that is the same in this one; NULL: not known. */
const struct xm_recorded_step *xm_request_recorded(const struct xm_request *r,
                                                   const struct xm_step *s);
/* Enqueues the step's launches, and counts its bytes and multiply-adds. */
enum xm_status xm_request_replay(struct xm_request *r, const struct xm_recorded_step *s,
                                 struct xm_error *err);
/* Runs a step by `run`, and records what it launches if this run is to be recorded; otherwise its
 * launches may take the place of those of an earlier run. */
typedef enum xm_status (*xm_step_fn)(struct xm_request *r, const struct xm_step *s,
                                     struct xm_error *err);
enum xm_status xm_request_record(struct xm_request *r, const struct xm_step *s,
                                 xm_step_fn run, struct xm_error *err);
/* Frees what *rec has, and makes it empty. */
void xm_request_free_recording(struct xm_run_recording *rec);

/* request_padding.c: rows of a batch that begin with padding, zeros of the key mask. */
bool xm_request_can_pack(const struct xm_program *p);
/* Sets mask_is_full from the key mask of the run that begins, and packs the intake where rows
 * begin with padding. XM_INVALID: the mask shows padding of an earlier run, which was not
 * stored. */
enum xm_status xm_request_read_mask(struct xm_request *r, struct xm_error *err);
/* The key mask of the positions that the rows hold; *out is `mask`, or the request's own. */
enum xm_status xm_request_shift_mask(struct xm_request *r,
                                     const struct xm_host_tensor *mask,
                                     const struct xm_host_tensor **out,
                                     struct xm_error *err);

/* request_remote.c: copies inputs in remote tensors to the host: those that the host reads in every
 * run, or all. Inputs that are not copied have data NULL. */
enum xm_status xm_request_fetch_inputs(struct xm_request *r, bool all,
                                       struct xm_error *err);
enum xm_status xm_request_copy_input(struct xm_request *r, uint32_t i,
                                     struct xm_error *err);
/* Delivers output i of a run that is still in the queue or has completed; does not wait. */
enum xm_status xm_request_deliver(struct xm_request *r, uint32_t i, struct xm_error *err);
void xm_request_free_remote(struct xm_request *r);

/* request.c: allocates memory for the tensor's shape, reusing the tensor's memory if it is large
 * enough. */
enum xm_status xm_request_resize(struct xm_host_tensor *t, struct xm_error *err);
/* Output i as an operand, with its shape under the current bindings of symbols, which the output's
 * host tensor gets as well. */
struct xm_operand xm_request_describe_result(struct xm_request *r, uint32_t i);

/* request_run.c: the tensor of the input called `name` among the inputs of a run; NULL: there is
 * none. */
const struct xm_host_tensor *xm_request_input_named(const struct xm_request *r,
                                                    const struct xm_host_tensor *inputs,
                                                    const char *name);

/* request_host.c: evaluates the nodes of a host step with the host reference. */
/* request_collective.c */
enum xm_status xm_request_run_collective(struct xm_request *r, const struct xm_step *s,
                                         struct xm_error *err);
enum xm_status xm_request_run_host(struct xm_request *r, const struct xm_step *s,
                                   struct xm_error *err);

#endif
