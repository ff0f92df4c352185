/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that a model needs, computed before anything is allocated.
 *
 * Passes, lowering and request planning are those of a real run, on an engine that only counts
 * (runtime/counting): therefore the result agrees with a real run without formulas of its own.
 * Weights are not read. Not counted: the driver's memory for compiled kernels and queues, and the
 * host memory of the compiled model's own structures.
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

/* The load to plan for: `requests` at the same time, each with `context` positions in its
 * states. */
struct xm_plan_wish {
    uint64_t context, requests; /* at least 1 */
    uint64_t prompt;            /* tokens of a prompt whose work is computed; 0: none */
    /* positions before the token whose work is computed; 0: as many as the prompt has */
    uint64_t past;
};

/* The bytes that a model needs. */
struct xm_memory_need {
    uint64_t weights;      /* weights and constants that are copied … */
    uint64_t host_weights; /* … the part of them that stays in host memory */
    /* weights that are used in the mapped file, without a copy */
    uint64_t mapped_weights;
    uint64_t experts;       /* the part of all weights that belongs to routed experts */
    uint64_t token_weights; /* weights that one token reads … */
    uint64_t token_experts; /* … the part of them that belongs to routed experts */
    uint64_t expert_cache;  /* device memory that caches experts of host memory */
    uint64_t kv, activations, scratch, io; /* each for all requests */
    struct xm_memory_stats kinds; /* by kind of memory: at the end, and the maximum */
};

/* The memory that is available. */
struct xm_memory_room {
    bool known;      /* false: not known; then every model fits */
    uint64_t device; /* bytes available in the device's memory */
    uint64_t host;   /* bytes available in the host's memory */
    /* host and device share one memory, whose size is `device` */
    bool host_is_device;
    /* Mapped weights count against the host's memory as well. False: the system may drop their
     * pages, and the next read waits for the disk. */
    bool is_for_mapped;
};

/* Returns the memory that the device has left after `in_use` (NULL: nothing) is allocated. */
void xm_planner_room(const struct xm_device_info *info,
                     const struct xm_memory_stats *in_use, struct xm_memory_room *out);
/* The bytes that count against room->host; 0 if the host and the device share one memory. */
uint64_t xm_planner_of_host(const struct xm_memory_need *need,
                            const struct xm_memory_room *room);
/* The bytes that count against room->device: all of them if the host and the device share one
 * memory, with mapped weights if room->is_for_mapped. */
uint64_t xm_planner_of_device(const struct xm_memory_need *need,
                              const struct xm_memory_room *room);
/* Returns how many bytes are missing; 0: the model fits. */
uint64_t xm_planner_excess(const struct xm_memory_need *need,
                           const struct xm_memory_room *room);
/* Estimates how many bytes of weights each token reads from the disk, because the mapped weights
 * exceed the host's memory; 0: none. Weights that every token reads are assumed to stay in memory
 * before experts, and all experts to be equally likely. */
uint64_t xm_planner_token_disk(const struct xm_memory_need *need,
                               const struct xm_memory_room *room);
/* ---- a plan -------------------------------------------------------------------------- */

enum { XM_PLAN_LARGEST_CONTEXT = 1 << 20 };

/* The changes that a plan may advise. */
enum xm_plan_change {
    XM_PLAN_CONTEXT, /* a smaller context */
    XM_PLAN_KV,      /* another KV_CACHE_PRECISION */
    XM_PLAN_CHUNK,   /* another XM_UBATCH */
    XM_PLAN_OFFLOAD, /* another OFFLOAD_RATIO, where the device has its own memory */
    XM_PLAN_N_CHANGES
};

/* A change that alone makes the model fit; this was verified by planning with it. */
struct xm_plan_advice {
    enum xm_plan_change change;
    char value[24];
};

/* The KV cache of the layers with the same sliding window, for one sequence of the wished
 * context. */
struct xm_plan_kv_group {
    uint64_t window; /* positions that a token attends to; 0: all */
    uint32_t layers;
    uint64_t positions; /* maximum number of positions kept, in whole pages */
    uint64_t bytes;
};

struct xm_plan {
    /* Set by the caller: */
    struct xm_device_info info;
    /* the user's options; an expert cache whose size is not set gets one */
    struct xm_config config;
    struct xm_plan_wish wish;
    struct xm_memory_room room;
    /* as xm_compile_options.replace: makes a rank's part of the model; NULL: the whole model */
    enum xm_status (*replace)(void *ctx, struct xm_graph **g, struct xm_error *err);
    void *replace_ctx;
    bool only_this; /* searches for neither the largest context nor advice */
    /* Set by xm_planner_plan: */
    struct xm_config decided; /* the config after the rules */
    struct xm_memory_need need;
    uint64_t excess; /* missing bytes; 0: the model fits */
    /* the largest context that fits with this number of requests; <= XM_PLAN_LARGEST_CONTEXT */
    uint64_t largest_context;
    /* the wish needs larger buffers than any device has, and a smaller context would fit */
    bool is_beyond_counting;
    struct xm_plan_advice advice[XM_PLAN_N_CHANGES];
    size_t n_advice;
    struct xm_plan_kv_group *kv_groups; /* owned: xm_planner_free_plan */
    uint32_t n_kv_groups;
    /* If the wish has a prompt: the work of a sequence's whole prompt, and of one token after
     * wish.past positions. Without steps: the model does not support sequences. */
    struct xm_run_work prompt_work, token_work;
    const char *weight_format; /* the format of most bytes of the weights; static */
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
