/* SPDX-License-Identifier: Apache-2.0
 *
 * How text is to be made with a model: the ids where it begins, ends and is padded, the ids that
 * are never chosen, and what its authors recommend for sampling.
 *
 * generation_config.json speaks first, config.json fills in the ids that it does not say; either
 * may be missing. A recommendation that is no number in its range counts as not said; without
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
    XM_MAX_EOS = 16,       /* in a configuration                     */
    XM_MAX_KNOWN_ENDS = 19 /* that end_tokens.h knows by their texts */
};

struct xm_generation_config {
    int32_t eos[XM_MAX_EOS + XM_MAX_KNOWN_ENDS]; /* any of them ends the text */
    size_t n_eos;
    /* the first of them, which the folder's files say; 0: none, or no folder */
    size_t n_said;
    int32_t bos, pad; /* -1: none */
    /* owned; never chosen; ids may be beyond the vocabulary */
    struct xm_token_list suppressed;
    struct xm_sampling sampling; /* its seed is the caller's matter */
    uint64_t max_tokens;         /* new ones; 0: not said */
};

/* Without any file. */
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
