/* SPDX-License-Identifier: Apache-2.0
 *
 * --profile: the device time of a generation by groups of steps, for the prompt and for decoding.
 *
 * Steps of the same op with the same kernels are one group. The measured rows of a request are
 * taken and reset after each run, so that each run belongs to one phase.
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

/* Maximum number of kernels of a step; further ones are added to the last. */
enum { XM_PROFILE_KERNELS = 32 };
struct xm_profile_group {
    const char *op;
    /* the longest total time first */
    struct xm_profile_kernel kernels[XM_PROFILE_KERNELS];
    size_t n_kernels;
    uint64_t steps;        /* maximum number of this group's steps in a run */
    uint64_t runs, ns;     /* number of runs of steps; time of their kernels */
    uint64_t steps_so_far; /* in the run that is being read */
    uint64_t bytes, multiply_adds;
    bool on_host;
};

/* Zero-initialise; free with xm_profile_free. */
struct xm_profile {
    struct xm_infer *request; /* NULL: nothing is profiled */
    struct {
        struct xm_profile_group *groups;
        size_t n, capacity;
    } phases[XM_PROFILE_PHASES];
    struct xm_profile_group step; /* the step whose rows are being read */
    uint32_t step_index;
    enum xm_profile_phase phase; /* of the run that is being read */
    bool has_prompt;
    struct xm_error err; /* the first failure; other runs are counted nevertheless */
};

/* Starts measuring `r`. XM_DEVICE: the device cannot measure. `r` must live until its last run has
 * been taken and the trace is written; the model must live until the profile is printed. */
enum xm_status xm_profile_begin(struct xm_profile *p, struct xm_infer *r, bool traces,
                                struct xm_error *err);
/* Takes the rows of the runs since the last call and adds them to `phase`. */
void xm_profile_take(struct xm_profile *p, enum xm_profile_phase phase);
void xm_profile_free(struct xm_profile *p);

/* Prints the table on standard error, the longest group first. */
void xm_profile_print(struct xm_profile *p, const struct xm_costs *c);
void xm_profile_add_json(struct xm_profile *p, const struct xm_costs *c,
                         struct xm_json_out *j);

/* ---- trace.c ---- */

/* Checks, before the run, that a trace can be written to `path`; creates an empty file. */
enum xm_status xm_trace_check(const char *path, struct xm_error *err);
/* Writes all launches since xm_profile_begin in Chrome's trace format, under the name `device`. */
enum xm_status xm_trace_write(const struct xm_profile *p, const char *device,
                              const char *path, struct xm_error *err);

#endif
