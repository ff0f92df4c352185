/* SPDX-License-Identifier: Apache-2.0
 *
 * A short description of a model for lines with measured figures; and the model's begin-of-text
 * token.
 */
#ifndef XM_PLUGIN_CLI_MODEL_ID_H
#define XM_PLUGIN_CLI_MODEL_ID_H

#include "plugin/cli/cli.h"

/* 0 or "": not known. */
struct xm_model_id {
    char text[128]; /* "qwen3_moe 30.53B.A3.34B u4": family, parameters, weights */
    uint64_t bytes, parameters;
};

/* Fills in *out; reads the model's graph once more. */
void xm_model_id_find(const struct xm_cli_model *m, struct xm_model_id *out);

/* Returns the token that the tokenizer puts before a text in *id. False: there is none, or no
 * tokenizer. */
bool xm_model_first_token(const struct xm_cli_model *m, int32_t *id);

#endif
