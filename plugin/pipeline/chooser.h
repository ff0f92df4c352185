/* SPDX-License-Identifier: Apache-2.0
 *
 * The next tokens of several texts, chosen side by side.
 *
 * Texts share scratch memory, one for each thread. A text's token depends on its own row and
 * sampler only, whichever thread chooses it and whatever other texts there are.
 */
#ifndef XM_PLUGIN_PIPELINE_CHOOSER_H
#define XM_PLUGIN_PIPELINE_CHOOSER_H

#include "plugin/pipeline/next_token.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_choice {
    struct xm_next_token text; /* its scratch is the chooser's     */
    const float *row;          /* of logits                        */
    int32_t id;                /* out: the token                   */
    bool is_sound;             /* out: the row is a distribution   */
    struct xm_error error;     /* out: XM_OK, or why there is none */
};

struct xm_chooser;

/* NULL: no memory. Threads and scratch memory are made when they are first needed. */
struct xm_chooser *xm_chooser_create(void);
void xm_chooser_free(struct xm_chooser *c); /* NULL is allowed */

/* Chooses a token of each list entry; their samplers differ. A row that is no distribution has no
 * token and no error: see is_sound. Failures are the entries', but for what all need. The clock has
 * one time for each token. Used by one thread at a time. */
enum xm_status xm_chooser_run(struct xm_chooser *c, struct xm_choice *list, size_t n,
                              uint64_t vocabulary, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
