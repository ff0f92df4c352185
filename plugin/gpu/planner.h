/* SPDX-License-Identifier: Apache-2.0
 *
 * What running a model takes, before anything of it is allocated.
 *
 *   graph ──► program ──► requests of a context ──► bytes by kind        on a counting engine
 *
 * The passes, the lowering and the planning of requests are the real ones; only the engine
 * (runtime/counting) has no memory behind it, so there is no second formula to keep true.
 * Weights are not read. Not counted: what the driver takes for compiled kernels and queues,
 * and the host memory of the program's own structures.
 */
#ifndef XM_PLUGIN_GPU_PLANNER_H
#define XM_PLUGIN_GPU_PLANNER_H

#include "plugin/gpu/program.h"
#include "plugin/gpu/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is to be held: `requests` at once, each with a state of `context` positions. */
struct xm_plan_wish {
    uint64_t context, requests; /* at least 1 */
};

/* Bytes that it takes. */
struct xm_memory_need {
    uint64_t weights; /* of weights and constants that are copies …               */
    uint64_t host_weights; /* … of them, those that stay in host memory                */
    uint64_t
        mapped_weights; /* used where the file is mapped: no copy                    */
    uint64_t experts;   /* of all weights, wherever: those of routed experts         */
    uint64_t token_weights; /* that one token reads …                                 */
    uint64_t token_experts; /* … of them, of routed experts                           */
    uint64_t expert_cache;  /* on the device, for some of those on the host           */
    uint64_t kv, activations, scratch,
        io;                       /* of all requests                             */
    struct xm_memory_stats kinds; /* at the end, and at most                      */
};

/* What there is. */
struct xm_memory_room {
    bool known;      /* false: nobody says; then everything fits                     */
    uint64_t device; /* bytes for what lies in the device's memory                   */
    uint64_t host;   /* bytes of host memory that may be taken                        */
    bool
        host_is_device; /* one memory: `device` is for both                              */
    /* Mapped weights have to find room in the host's memory as well. False: the system may drop
     * their pages, and whoever reads them waits for the disk. */
    bool is_for_mapped;
};

/* Compiles `g` for a device as its plugin would, on a counting engine. Takes `g` over, also on
 * failure. */
enum xm_status xm_planner_compile(const struct xm_device_info *info,
                                  const struct xm_config *config, struct xm_graph *g,
                                  struct xm_program **out, struct xm_error *err);
/* The same; the program keeps its graph, for those who look into it. */
enum xm_status xm_planner_compile_open(const struct xm_device_info *info,
                                       const struct xm_config *config, struct xm_graph *g,
                                       struct xm_program **out, struct xm_error *err);
/* What such a program and requests of it take. A request gets a prompt of all but one position
 * and then one token, as text generation does. */
enum xm_status xm_planner_count(struct xm_program *p, const struct xm_plan_wish *wish,
                                struct xm_memory_need *out, struct xm_error *err);

/* One run of a request with `tokens` more tokens of one sequence; their ids are zeros. */
enum xm_status xm_planner_feed(struct xm_request *r, int64_t tokens,
                               struct xm_error *err);

/* How many kernels the program that is made of `p` and its rewritten graph takes; 0: not known. */
uint64_t xm_planner_kernels(const struct xm_program *p, struct xm_graph *g);

/* What a device has left when `in_use` (NULL: nothing) is allocated on it already. */
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
/* MiB of what a program without an expert cache leaves that one may take (XM_EXPERT_CACHE); 0 where
 * the host's memory is the device's, which would gain nothing. */
uint32_t xm_planner_expert_cache(const struct xm_memory_need *need,
                                 const struct xm_memory_room *room);
/* The largest context, up to `most`, whose requests fit; 0: none does. */
enum xm_status xm_planner_largest_context(struct xm_program *p,
                                          const struct xm_memory_room *room,
                                          uint64_t requests, uint64_t most, uint64_t *out,
                                          struct xm_error *err);

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
    /* The caller's. */
    struct xm_device_info info;
    struct xm_config
        config; /* as the user wants it; a cache of experts of an open size gets one */
    struct xm_plan_wish wish;
    struct xm_memory_room room;
    /* Found. */
    struct xm_config decided; /* as the rules made it */
    struct xm_memory_need need;
    uint64_t excess;          /* bytes; 0: it fits */
    uint64_t largest_context; /* of as many requests, at most XM_PLAN_LARGEST_CONTEXT */
    bool is_beyond_counting;  /* the wish: no device takes such buffers */
    struct xm_plan_advice advice[XM_PLAN_N_CHANGES];
    size_t n_advice;
    struct xm_plan_kv_group *kv_groups; /* owned: xm_planner_free_plan */
    uint32_t n_kv_groups;
};

/* Counts what `g`, which stays the caller's, takes, and looks for what would help where it does not
 * fit. XM_NO_MEMORY with is_beyond_counting: the sentence says which context would fit. */
enum xm_status xm_planner_plan(struct xm_plan *p, const struct xm_graph *g,
                               struct xm_error *err);
void xm_planner_free_plan(struct xm_plan *p); /* what was found, not the struct */
/* A context to plan for where nobody asks for one: no more than the model was trained for (0: not
 * known). */
uint64_t xm_planner_usual_context(uint64_t trained);

/* Before lowering: whether the rewritten `g` fits on p's device. Experts that do not are left
 * on the host (p->config.offload_ratio) unless the user said how many, twice as many when the size
 * of their cache (p->config.expert_cache) is open, which then gets what is left; a chunk that wants
 * larger buffers than the device allocates is halved (p->config.ubatch). XM_NO_MEMORY when even
 * one token of context is too much, with what would help. */
enum xm_status xm_planner_fit(struct xm_program *p, struct xm_graph *g,
                              struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
