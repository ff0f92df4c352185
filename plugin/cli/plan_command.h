/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe plan: plan_command.c computes the memory plan, plan_print.c prints it; plan_mesh.c
 * does both for several devices.
 */
#ifndef XM_PLUGIN_CLI_PLAN_COMMAND_H
#define XM_PLUGIN_CLI_PLAN_COMMAND_H

#include "plugin/cli/chip.h"
#include "plugin/cli/cli.h"
#include "plugin/memory_planner.h"
#include "plugin/program_util/json_out.h"
#include "plugin/program_util/lines.h"

struct xm_plan_args {
    struct xm_chip_args chip;
    /* Options of meshes; NULL and 0: not given. */
    const char *split, *messages, *link, *local_link;
    uint64_t nodes;
    const char *bandwidth;
    uint64_t prompt; /* tokens of the forecast's prompt */
    const char *model, *kv, *key_cache, *value_cache, *kv_memory, *precision, *offload,
        *expert_cache, *weights, *quantisation;
    uint64_t parallel;
    uint64_t chunk; /* 0: not given */
    bool json;
};

struct xm_plan_result {
    struct xm_plan plan;
    uint64_t trained_context; /* the model's, from its files, in tokens; 0: not known */
    struct xm_rates rates;    /* of the device */
    /* for a compiled file: path of the model that it was compiled from; else empty */
    struct xm_strbuf compiled_from;
};

/* Sets the options in *c; other settings of *c stay. */
enum xm_status xm_plan_set_config(const struct xm_plan_args *a, struct xm_config *c,
                                  struct xm_error *err);
/* Opens the model's package, and sets r's `compiled_from` and config. */
enum xm_status xm_plan_open_model(const char *path, struct xm_plan_result *r,
                                  struct xm_package **package, struct xm_error *err);
/* Sets p's wish from the options, and the memory that p's device has. */
void xm_plan_set_wish(const struct xm_plan_args *a, uint64_t trained, struct xm_plan *p);
/* Writes the names of the KV cache's types to `out`, which it returns. */
const char *xm_plan_cache_types(const struct xm_config *c, char out[32]);
/* Adds the member "memory". */
void xm_plan_add_need(struct xm_json_out *j, yyjson_mut_val *parent,
                      const struct xm_memory_need *n);

/* Prints the changes, each of which alone makes the model fit, as options; n 0: that there is no
 * such change. */
void xm_plan_print_advice(struct xm_lines *o, const struct xm_plan_advice *list,
                          size_t n);
/* Adds the member "advice". */
void xm_plan_add_advice(struct xm_json_out *j, const struct xm_plan_advice *advice,
                        size_t n);

/* Whether p plans with the memory of this computer, because the imagined device has none of its own
 * and --memory is not given. */
bool xm_plan_takes_this_memory(const struct xm_plan_args *a, const struct xm_plan *p);
/* Writes the reason why the memory is not known, to follow "because", to `out`, which it
 * returns. */
const char *xm_plan_no_memory(const char *device, char out[XM_CLI_WARNING]);
/* Adds the member "room_of": the computer or device whose memory is planned with. */
void xm_plan_add_room_of(struct xm_json_out *j, yyjson_mut_val *parent,
                         const struct xm_plan_args *a, const struct xm_plan *p);

/* plan_mesh.c: whether the options name several devices; the command for them. */
bool xm_plan_is_mesh(const struct xm_plan_args *a);
int xm_plan_mesh(const struct xm_plan_args *a);
/* Prints on standard error that one of the devices alone is expected to be faster than all, if
 * so. */
void xm_plan_say_alone(const struct xm_plan_args *a, const struct xm_config *config,
                       struct xm_package *package, const char *cache_dir);
/* Keeps for later forecasts how long a prompt of a->prompt tokens and the token after it took on
 * a's devices (xm_mesh_plan_keep). Keeps nothing if the rates of each device alone have not been
 * measured. */
void xm_plan_keep_mesh(const struct xm_plan_args *a, const struct xm_config *config,
                       struct xm_package *package, const char *cache_dir, double prompt_s,
                       double token_s);

void xm_plan_print_text(const struct xm_plan_args *a, const struct xm_plan_result *p);
enum xm_status xm_plan_print_json(const struct xm_plan_args *a,
                                  const struct xm_plan_result *p, struct xm_error *err);

#endif
