/* SPDX-License-Identifier: Apache-2.0
 *
 * The special ids of a model folder: where text begins, ends and is padded.
 *
 * generation_config.json speaks first, config.json fills in what it does not say; either
 * may be missing.
 */
#ifndef XM_PLUGIN_TEXT_MODEL_CONFIG_H
#define XM_PLUGIN_TEXT_MODEL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    XM_MAX_EOS = 16,       /* in a configuration                     */
    XM_MAX_KNOWN_ENDS = 17 /* that end_tokens.h knows by their texts */
};

struct xm_model_ids {
    int32_t eos[XM_MAX_EOS + XM_MAX_KNOWN_ENDS]; /* any of them ends the text */
    size_t n_eos;
    int32_t bos, pad; /* -1: none */
};

enum xm_status xm_model_ids_load(const char *folder, struct xm_model_ids *out,
                                 struct xm_error *err);
bool xm_model_ids_is_eos(const struct xm_model_ids *ids, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
