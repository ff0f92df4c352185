/* SPDX-License-Identifier: Apache-2.0
 *
 * The next tokens of several texts, chosen side by side.
 *
 * Each thread has scratch memory, which the texts that it chooses for share. The token of a text
 * depends on its own logits and sampler only, not on the thread or on other texts.
 */
#ifndef XM_PLUGIN_PIPELINE_CHOOSER_H
#define XM_PLUGIN_PIPELINE_CHOOSER_H

#include "plugin/pipeline/text.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_choice {
    struct xm_text *text;
    const float *row;      /* of logits                        */
    int32_t id;            /* out: the token                   */
    bool is_sound;         /* out: the row is a distribution   */
    struct xm_error error; /* out: XM_OK, or why there is none */
};

struct xm_chooser;

/* NULL: no memory. Threads and scratch memory are made when they are first needed. */
struct xm_chooser *xm_chooser_create(void);
void xm_chooser_free(struct xm_chooser *c); /* NULL is allowed */

/* Chooses a token for each entry of list[n]; each entry has a text of its own. For a row that is
 * no distribution, is_sound is false and neither token nor error is set. A failure of one entry is
 * in its `error`; the call fails only where threads or memory for all are missing. The clock
 * records one time for each token. Used by one thread at a time. */
enum xm_status xm_chooser_run(struct xm_chooser *c, struct xm_choice *list, size_t n,
                              uint64_t vocabulary, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
