/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches of a text: they begin with one prompt and go on side by side, a token each at a time;
 * some end, others split.
 *
 *     prompt ──► 0 ──┬──► 0 "a" ──┬──► 0 "ab"
 *                    │            └──► 1 "ac"
 *                    └──► 1 "x"
 *
 * Where the compiled model has sequences, each branch is one, a split a fork, and all are run
 * together. Elsewhere one request computes them in turn, and anew what they do not share.
 */
#ifndef XM_PLUGIN_PIPELINE_BRANCHES_H
#define XM_PLUGIN_PIPELINE_BRANCHES_H

#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_branches;

/* A branch becomes that of number `parent` with a token behind it. */
struct xm_branch_step {
    size_t parent;
    int32_t id;
};

struct xm_branches_ops {
    /* Branch 0 holds the prompt. *reused: so many of its tokens others had computed. */
    enum xm_status (*begin)(struct xm_branches *b, const int32_t *prompt, size_t n,
                            uint64_t *reused, struct xm_error *err);
    /* Branch i becomes what steps[i] says; those that are nobody's parent end. After a failure
     * there are none. */
    enum xm_status (*go_on)(struct xm_branches *b, const struct xm_branch_step *steps,
                            size_t n, struct xm_error *err);
    /* The logits behind branch i, which are a distribution; valid until it goes on. */
    const float *(*logits)(const struct xm_branches *b, size_t i, uint64_t *vocabulary);
    void (*destroy)(struct xm_branches *b);
};

struct xm_branches {
    const struct xm_branches_ops *ops;
};

/* Used by one thread at a time. */
enum xm_status xm_branches_create(struct xm_compiled *compiled, struct xm_branches **out,
                                  struct xm_error *err);
void xm_branches_destroy(struct xm_branches *b); /* NULL is allowed */

/* What it chooses from. XM_UNSUPPORTED of the first: the model has no sequences. */
enum xm_status xm_branches_create_together(struct xm_compiled *compiled,
                                           struct xm_branches **out,
                                           struct xm_error *err);
enum xm_status xm_branches_create_in_turn(struct xm_compiled *compiled,
                                          struct xm_branches **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
