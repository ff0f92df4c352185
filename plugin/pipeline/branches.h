/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches of a text: continuations of one prompt. In each step every branch gets one token, ends,
 * or splits into several branches.
 *
 *     prompt ──► 0 ──┬──► 0 "a" ──┬──► 0 "ab"
 *                    │            └──► 1 "ac"
 *                    └──► 1 "x"
 *
 * Where the compiled model supports sequences, each branch is a sequence, a split forks it, and one
 * run computes all branches. Otherwise one request computes them one after the other, and computes
 * again the tokens that a branch does not share with the one before.
 */
#ifndef XM_PLUGIN_PIPELINE_BRANCHES_H
#define XM_PLUGIN_PIPELINE_BRANCHES_H

#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_branches;

/* A new branch: the tokens of branch `parent`, then `id`. */
struct xm_branch_step {
    size_t parent;
    int32_t id;
};

struct xm_branches_ops {
    /* Computes the prompt as branch 0. *reused: how many of its tokens the cache already held. */
    enum xm_status (*begin)(struct xm_branches *b, const int32_t *prompt, size_t n,
                            uint64_t *reused, struct xm_error *err);
    /* Replaces all branches by n new ones: branch i is steps[i]. A branch that is no parent ends.
     * After a failure there are no branches. */
    enum xm_status (*go_on)(struct xm_branches *b, const struct xm_branch_step *steps,
                            size_t n, struct xm_error *err);
    /* The logits after the last token of branch i: [*vocabulary], a distribution; valid until the
     * next go_on. */
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

/* The two implementations that xm_branches_create chooses from. _together fails with XM_UNSUPPORTED
 * where the model has no sequences. */
enum xm_status xm_branches_create_together(struct xm_compiled *compiled,
                                           struct xm_branches **out,
                                           struct xm_error *err);
enum xm_status xm_branches_create_in_turn(struct xm_compiled *compiled,
                                          struct xm_branches **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
