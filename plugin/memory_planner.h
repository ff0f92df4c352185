/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that a model needs, computed before anything is allocated.
 *
 * The passes, the lowering and the planning of requests are those of a real run, on an engine that
 * only counts (runtime/counting); so no second formula has to follow them. Weights are not read.
 * Not counted: the driver's memory for compiled kernels and queues, and the host memory of the
 * compiled model's own structures.
 */
#ifndef XM_PLUGIN_MEMORY_PLANNER_H
#define XM_PLUGIN_MEMORY_PLANNER_H

#include "plugin/forecast.h"
#include "runtime/config.h"
#include "runtime/engine.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The load to plan for: `requests` at once, each with a state of `context` positions. */
struct xm_plan_wish {
    uint64_t context, requests; /* at least 1 */
    uint64_t prompt;            /* tokens of a prompt whose work is counted; 0: none */
    uint64_t past; /* positions behind which a token's work is counted; 0: the prompt's */
};

/* Bytes that it takes. */
struct xm_memory_need {
    uint64_t weights; /* of weights and constants that are copies …               */
    uint64_t host_weights; /* … of them, those that stay in host memory                */
    /* used where the file is mapped: no copy */
    uint64_t mapped_weights;
    uint64_t experts; /* of all weights, wherever: those of routed experts         */
    uint64_t token_weights; /* that one token reads …                                 */
    uint64_t token_experts; /* … of them, of routed experts                           */
    uint64_t expert_cache;  /* on the device, for some of those on the host           */
    uint64_t kv, activations, scratch,
        io;                       /* of all requests                             */
    struct xm_memory_stats kinds; /* at the end, and at most                      */
};

/* What there is. */
struct xm_memory_room {
    bool known;      /* false: not known; then everything fits                       */
    uint64_t device; /* bytes for what lies in the device's memory                   */
    uint64_t host;   /* bytes of host memory that may be taken                        */
    /* one memory: `device` is for both */
    bool host_is_device;
    /* Mapped weights count against the host's memory as well. False: the system may drop their
     * pages, and the next read waits for the disk. */
    bool is_for_mapped;
};

/* The memory that a device has left when `in_use` (NULL: nothing) is allocated already. */
void xm_planner_room(const struct xm_device_info *info,
                     const struct xm_memory_stats *in_use, struct xm_memory_room *out);
/* The bytes that count against room->host; 0 where that is the device's memory. */
uint64_t xm_planner_of_host(const struct xm_memory_need *need,
                            const struct xm_memory_room *room);
/* The bytes that count against room->device: all, where the host's memory is the device's, with
 * mapped weights where the room is for them. */
uint64_t xm_planner_of_device(const struct xm_memory_need *need,
                              const struct xm_memory_room *room);
/* Bytes that are missing; 0: it fits. */
uint64_t xm_planner_excess(const struct xm_memory_need *need,
                           const struct xm_memory_room *room);
/* About how many bytes of weights each token reads from the disk, because mapped weights have more
 * bytes than the host's memory has room for; 0: none. Weights that every token reads are held
 * before experts, which are as likely as each other. */
uint64_t xm_planner_token_disk(const struct xm_memory_need *need,
                               const struct xm_memory_room *room);
/* ---- a plan -------------------------------------------------------------------------- */

enum { XM_PLAN_LARGEST_CONTEXT = 1 << 20 };

/* What could be changed. */
enum xm_plan_change {
    XM_PLAN_CONTEXT, /* a smaller one                                      */
    XM_PLAN_KV,      /* KV_CACHE_PRECISION                                 */
    XM_PLAN_CHUNK,   /* XM_UBATCH                                          */
    XM_PLAN_OFFLOAD, /* OFFLOAD_RATIO: where the device has its own memory */
    XM_PLAN_N_CHANGES
};

/* A change that alone is enough; it has been counted. */
struct xm_plan_advice {
    enum xm_plan_change change;
    char value[24];
};

/* The KV cache of layers that see as far back, for one sequence of the wished context. */
struct xm_plan_kv_group {
    uint64_t window; /* positions that a token sees; 0: all             */
    uint32_t layers;
    uint64_t positions; /* that are kept, at most; whole pages             */
    uint64_t bytes;
};

struct xm_plan {
    /* Set by the caller: */
    struct xm_device_info info;
    /* the user's options; an expert cache whose size is not set gets one */
    struct xm_config config;
    struct xm_plan_wish wish;
    struct xm_memory_room room;
    /* xm_compile_options.replace: of a rank, its part of the model; NULL: all of it */
    enum xm_status (*replace)(void *ctx, struct xm_graph **g, struct xm_error *err);
    void *replace_ctx;
    bool only_this; /* neither the largest context nor advice is wanted */
    /* Set by xm_planner_plan: */
    struct xm_config decided; /* the config after the rules */
    struct xm_memory_need need;
    uint64_t excess; /* missing bytes; 0: the model fits */
    /* that fits with as many requests; <= XM_PLAN_LARGEST_CONTEXT */
    uint64_t largest_context;
    /* the wish needs larger buffers than any device has, and a smaller context would fit */
    bool is_beyond_counting;
    struct xm_plan_advice advice[XM_PLAN_N_CHANGES];
    size_t n_advice;
    struct xm_plan_kv_group *kv_groups; /* owned: xm_planner_free_plan */
    uint32_t n_kv_groups;
    /* Of a sequence, where the wish has a prompt: all of it, and one token (wish.past). Without
     * steps: the model has no sequences. */
    struct xm_run_work prompt_work, token_work;
    const char *weight_format; /* that most bytes of the weights have; static */
};

/* Computes the memory that the model `g` needs; if it does not fit, searches for changes that make
 * it fit. Does not own `g`. XM_NO_MEMORY with is_beyond_counting: the sentence says which context
 * would fit. */
enum xm_status xm_planner_plan(struct xm_plan *p, const struct xm_graph *g,
                               struct xm_error *err);
void xm_planner_free_plan(struct xm_plan *p); /* frees the members, not *p */
/* The default context of a plan: at most the context that the model was trained for (0: not
 * known). */
uint64_t xm_planner_usual_context(uint64_t trained);

#ifdef __cplusplus
}
#endif
#endif
