/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe plan: plan_command.c computes the memory plan, plan_print.c prints it.
 */
#ifndef XM_PLUGIN_CLI_PLAN_COMMAND_H
#define XM_PLUGIN_CLI_PLAN_COMMAND_H

#include "plugin/cli/chip.h"
#include "plugin/cli/cli.h"
#include "plugin/memory_planner.h"

struct xm_plan_args {
    struct xm_chip_args chip;
    const char *model, *kv, *key_cache, *value_cache, *kv_memory, *precision, *offload,
        *expert_cache, *weights, *quantisation;
    uint64_t parallel;
    uint64_t chunk; /* 0: not given */
    bool json;
};

struct xm_plan_result {
    struct xm_plan plan;
    uint64_t trained_context; /* the model's, from its files, in tokens; 0: not known */
    /* of a compiled file: the path of the model that it was compiled from; empty: no such file */
    struct xm_strbuf compiled_from;
};

void xm_plan_print_text(const struct xm_plan_args *a, const struct xm_plan_result *p);
enum xm_status xm_plan_print_json(const struct xm_plan_args *a,
                                  const struct xm_plan_result *p, struct xm_error *err);

#endif
