/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe verify: compares a model's steps with the host reference, its logits with those of
 * another program (--against), or with its own under bf16 rounding (--numerics).
 */
#ifndef XM_PLUGIN_CLI_VERIFY_H
#define XM_PLUGIN_CLI_VERIFY_H

#include "plugin/cli/cli.h"
#include "plugin/program_util/npy.h"

/* In models opened from now on, makes each step use its nth kernel (XM_FORCE). */
void xm_verify_force(uint64_t nth);
/* Runs the tokens and then `decode` more, compares every step and prints the result. every_kernel:
 * `m` was opened with the first kernel of each step; it is closed and opened again with the next
 * kernel, until there is none. XM_EXIT_TOLERANCE: a step exceeds its tolerance. */
int xm_verify_steps(struct xm_cli_model *m, const struct xm_cli_target *t,
                    const struct xm_token_list *ids, uint64_t decode, bool every_kernel);

/* The logits to compare with: of every position of a text, or of its last position only. */
struct xm_other_logits {
    const char *path;
    struct xm_npy_floats rows; /* [positions][vocabulary]; a raw file is one row */
    bool is_raw;
    bool is_f32; /* this model's own logits, without XM_NUMERICS=bf16 */
};

/* Reads a .npy file, or a file of raw little-endian floats. XM_EXIT_FILE: it cannot be read. */
int xm_other_logits_read(const char *path, struct xm_other_logits *out);
void xm_other_logits_free(struct xm_other_logits *o);

/* Runs the tokens and prints how close the logits are. XM_EXIT_FAILED: not close enough; with
 * is_f32 any difference is accepted. */
int xm_verify_against(const struct xm_cli_model *m, struct xm_other_logits *other,
                      const struct xm_token_list *ids, bool json);

/* Closes `m`, compiles the model again with activations rounded to bf16 as in training
 * (XM_NUMERICS=bf16), and compares the logits of both. */
int xm_verify_numerics(struct xm_cli_model *m, const struct xm_cli_target *t,
                       const struct xm_token_list *ids);

#endif
