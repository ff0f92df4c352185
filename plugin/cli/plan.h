/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe plan: what plan.c finds out and plan_print.c says.
 */
#ifndef XM_PLUGIN_CLI_PLAN_H
#define XM_PLUGIN_CLI_PLAN_H

#include "plugin/cli/cli.h"
#include "plugin/planner.h"

enum { XM_PLAN_LARGEST_CONTEXT = 1 << 20, XM_PLAN_MAX_ADVICE = 5 };

struct xm_plan_args {
    const char *model, *device, *device_as, *kv, *precision, *offload, *expert_cache;
    uint64_t parallel;
    uint64_t context, chunk, memory; /* 0: not given */
    bool json;
};

/* Something to change, which has been counted to be enough. */
struct xm_plan_advice {
    const char *option;
    char value[24];
};

struct xm_plan_result {
    struct xm_device_info info;
    struct xm_config config;  /* as the user wants it */
    struct xm_config decided; /* and as the rules made it */
    struct xm_plan_wish wish;
    struct xm_graph *graph; /* as read */
    struct xm_memory_room room;
    struct xm_memory_need need;
    uint64_t excess, largest_context;
    uint64_t trained_context; /* of config.json; 0: not known */
    struct xm_plan_advice advice[XM_PLAN_MAX_ADVICE];
    size_t n_advice;
};

void xm_plan_print_text(const struct xm_plan_args *a, const struct xm_plan_result *p);
enum xm_status xm_plan_print_json(const struct xm_plan_args *a,
                                  const struct xm_plan_result *p, struct xm_error *err);

#endif
