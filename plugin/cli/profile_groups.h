/* SPDX-License-Identifier: Apache-2.0
 *
 * --profile: where the time of a generation went, prompt and decoding apart.
 *
 * Steps of the same op and the same kernels are one group. Rows are taken and reset behind each
 * run, so that a run is wholly of one phase.
 */
#ifndef XM_PLUGIN_CLI_PROFILE_GROUPS_H
#define XM_PLUGIN_CLI_PROFILE_GROUPS_H

#include "plugin/cli/costs.h"
#include "plugin/profile.h"

enum xm_profile_phase { XM_PROFILE_PROMPT, XM_PROFILE_DECODE, XM_PROFILE_PHASES };

/* A kernel in a group; its name lives as long as the model. */
struct xm_profile_kernel {
    const char *name;
    uint64_t runs, ns, unmeasured;
};

enum { XM_PROFILE_KERNELS = 32 }; /* of a step; what is more counts for the last */
struct xm_profile_group {
    const char *op;
    struct xm_profile_kernel kernels[XM_PROFILE_KERNELS]; /* the longest first */
    size_t n_kernels;
    uint64_t steps;        /* in a run, at most                    */
    uint64_t runs, ns;     /* of the steps; of their kernels       */
    uint64_t steps_so_far; /* of the rows that are being taken     */
    uint64_t bytes, multiply_adds;
    bool on_host;
};

/* Zero-initialise; xm_profile_free. */
struct xm_profile {
    struct xm_infer *request; /* NULL: nothing is profiled */
    struct {
        struct xm_profile_group *groups;
        size_t n, capacity;
    } phases[XM_PROFILE_PHASES];
    struct xm_profile_group step; /* whose rows are coming */
    uint32_t step_index;
    enum xm_profile_phase phase; /* of those rows */
    bool has_prompt;
    struct xm_error err; /* the first failure; the rest is there */
};

/* XM_DEVICE: this one cannot. `r` lives until the last is taken of it and the trace is written, the
 * model until the profile is printed. */
enum xm_status xm_profile_begin(struct xm_profile *p, struct xm_infer *r, bool traces,
                                struct xm_error *err);
/* What has run since the last call belongs to this phase. */
void xm_profile_take(struct xm_profile *p, enum xm_profile_phase phase);
void xm_profile_free(struct xm_profile *p);

/* On standard error, the longest group first. */
void xm_profile_print(struct xm_profile *p, const struct xm_costs *c);
void xm_profile_add_json(struct xm_profile *p, const struct xm_costs *c,
                         struct xm_json_out *j);

/* trace.c: whether a trace could be written there, before what is traced runs; makes an empty
 * file. */
enum xm_status xm_trace_check(const char *path, struct xm_error *err);
/* All launches since xm_profile_begin, as Chrome's trace format has them. `device` names
 * them there. */
enum xm_status xm_trace_write(const struct xm_profile *p, const char *device,
                              const char *path, struct xm_error *err);

#endif
