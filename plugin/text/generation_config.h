/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's defaults for generation: begin, end and padding token ids, token ids that are never
 * chosen, and the sampling parameters that its authors recommend.
 *
 * Ids are read from generation_config.json; ids that it lacks, from config.json. Either file may be
 * missing. A sampling parameter of a wrong type or out of its range is ignored. Without
 * "do_sample": true, generation is greedy.
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
    XM_MAX_EOS = 16,       /* most end-of-text ids taken from a file */
    XM_MAX_KNOWN_ENDS = 19 /* number of spellings in end_tokens.c */
};

struct xm_generation_config {
    int32_t eos[XM_MAX_EOS + XM_MAX_KNOWN_ENDS]; /* ids that end the text */
    size_t n_eos;
    /* The first n_said members of eos[] come from the model's files, the others from
     * end_tokens.h. */
    size_t n_said;
    int32_t bos, pad; /* -1: none */
    /* Owned; token ids that are never chosen. Some may be outside of the vocabulary. */
    struct xm_token_list suppressed;
    struct xm_sampling sampling; /* `seed` is 0; the caller sets it */
    uint64_t max_tokens;         /* limit on generated tokens; 0: none given */
};

/* Sets the defaults of a model that has neither file. */
void xm_generation_config_init(struct xm_generation_config *out);
void xm_generation_config_free(struct xm_generation_config *c);
/* Initialises *out and reads the files of a model folder. On failure `out` still has to be
 * freed. */
enum xm_status xm_generation_config_load(const char *folder,
                                         struct xm_generation_config *out,
                                         struct xm_error *err);
bool xm_generation_config_is_eos(const struct xm_generation_config *c, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
