/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a request: its struct, shared by request.c, request_plan.c and request_run.c.
 */
#ifndef XM_PLUGIN_REQUEST_RUN_H
#define XM_PLUGIN_REQUEST_RUN_H

#include "plugin/bind.h"
#include "plugin/request.h"
#include "runtime/pool.h"
#include "transformations/graph/evaluate.h"

/* Plans kept: decode, a full chunk, a prompt's last chunk, one more. */
enum { XM_KEPT_PLANS = 4 };

/* Buffers for one set of value sizes. */
struct xm_buffer_plan {
    uint64_t *bytes; /* by value: the sizes it was made for; NULL: empty slot      */
    struct xm_buffer **views; /* by value: its bytes (roots only)                   */
    uint64_t io_bytes;        /* of inputs, outputs and shape values                */
    uint64_t used; /* number of the run that used it last                        */
};

struct xm_request {
    struct xm_program *program;
    struct xm_queue *queue;
    struct xm_host_tensor *inputs; /* as set; bytes borrowed  */
    struct xm_host_tensor *chunk;  /* of one chunk: parts of inputs, or of cut */
    struct xm_host_tensor *cut; /* parts that are no stretch of an input; bytes owned */
    struct xm_host_tensor *outputs; /* bytes owned */
    struct xm_bindings bindings;
    uint64_t *sizes;           /* by value, for these bindings                         */
    struct xm_pool *pool;      /* of all buffers below */
    struct xm_buffer *scratch; /* shared by all steps; NULL: none is needed */
    struct xm_buffer **blocks; /* activations; shared by all plans: they take turns */
    uint32_t n_blocks;
    struct xm_buffer_plan plans[XM_KEPT_PLANS];
    struct xm_buffer_plan *plan; /* the current one */
    struct xm_kv_cache kv;
    struct xm_state_store *states; /* host steps only */
    bool mask_is_full; /* no position is padding in this run                    */
    bool continues;    /* this chunk is not a run's first: rows are in order already */
    bool cancelled;    /* atomic                                               */
    bool has_caches;   /* of the program's experts, for this run               */
    uint64_t n_runs;
    xm_step_hook hook;
    void *hook_ctx;
    struct xm_request_stats stats;
};

/* request_plan.c: r->plan and r->sizes for the current bindings. */
enum xm_status xm_request_make_plan(struct xm_request *r, struct xm_error *err);
void xm_request_free_plan(struct xm_request *r, struct xm_buffer_plan *plan);
uint64_t xm_request_activation_bytes(const struct xm_request *r);
/* The operand of a value under the current plan and bindings. */
void xm_request_operand(const struct xm_request *r, uint32_t value,
                        struct xm_operand *out);

static inline bool
xm_request_has_states(const struct xm_request *r)
{
    return r->program->n_kv > 0 || r->program->host_states;
}

/* request_run.c: everything between bound inputs and enqueued outputs. */
enum xm_status xm_request_run_chunk(struct xm_request *r,
                                    const struct xm_host_tensor *inputs,
                                    struct xm_error *err);

/* request_host.c: the nodes of a host step, by the reference. */
enum xm_status xm_request_run_host(struct xm_request *r, const struct xm_step *s,
                                   struct xm_error *err);

#endif
