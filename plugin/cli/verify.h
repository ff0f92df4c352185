/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe verify: logits against those of another program, or of other numerics.
 */
#ifndef XM_PLUGIN_CLI_VERIFY_H
#define XM_PLUGIN_CLI_VERIFY_H

#include "plugin/cli/cli.h"
#include "plugin/program_util/npy.h"

/* Another program's logits: of every position of a text, or of its last. */
struct xm_other_logits {
    const char *path;
    struct xm_npy_floats rows; /* a raw file is one row */
    bool is_raw;
    bool is_f32; /* not of another program: this model's, without XM_NUMERICS=bf16 */
};

/* .npy, or floats without anything around them. XM_EXIT_FILE. */
int xm_other_logits_read(const char *path, struct xm_other_logits *out);
void xm_other_logits_free(struct xm_other_logits *o);

/* Runs the tokens and says how close the logits are. XM_EXIT_FAILED: not close enough, which those
 * that are compared with is_f32 always are. */
int xm_verify_against(const struct xm_cli_model *m, struct xm_other_logits *other,
                      const struct xm_token_list *ids, bool json);

/* Compiles the model once more, with roundings as in training, and compares the logits of `m`,
 * which is closed before, with those. */
int xm_verify_numerics(struct xm_cli_model *m, const struct xm_cli_target *t,
                       const struct xm_token_list *ids);

#endif
