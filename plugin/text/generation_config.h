/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's defaults for generation: the ids that begin, end and pad a text, the ids that are never
 * chosen, and the sampling that its authors recommend.
 *
 * Ids are read from generation_config.json, and those that it lacks from config.json; either file
 * may be missing. A sampling value of another type or out of its range is ignored. Without
 * "do_sample" the likeliest token is taken.
 */
#ifndef XM_PLUGIN_TEXT_GENERATION_CONFIG_H
#define XM_PLUGIN_TEXT_GENERATION_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin/text/sampler.h"
#include "plugin/text/token_list.h"
#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    XM_MAX_EOS = 16,       /* in a file                              */
    XM_MAX_KNOWN_ENDS = 19 /* that end_tokens.h knows by their texts */
};

struct xm_generation_config {
    int32_t eos[XM_MAX_EOS + XM_MAX_KNOWN_ENDS]; /* any of them ends the text */
    size_t n_eos;
    /* how many of eos[], from the first on, come from the folder's files; 0: none, or no folder */
    size_t n_said;
    int32_t bos, pad; /* -1: none */
    /* owned; never chosen; ids may be beyond the vocabulary */
    struct xm_token_list suppressed;
    struct xm_sampling sampling; /* the caller sets the seed */
    uint64_t max_tokens;         /* new tokens; 0: not given */
};

/* Sets the defaults that hold without any file. */
void xm_generation_config_init(struct xm_generation_config *out);
void xm_generation_config_free(struct xm_generation_config *c);
/* On failure `out` still has to be freed. */
enum xm_status xm_generation_config_load(const char *folder,
                                         struct xm_generation_config *out,
                                         struct xm_error *err);
bool xm_generation_config_is_eos(const struct xm_generation_config *c, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
