/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the next tokens of several texts in parallel.
 *
 * Each thread has scratch memory for all texts that it handles. The token of a text depends only on
 * its own logits and sampler, not on the thread or on other texts.
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
    bool is_sound;         /* out: the row has neither NaN nor +infinity */
    struct xm_error error; /* out: XM_OK, or why no token was chosen */
};

struct xm_chooser;

/* Creates a chooser; NULL: no memory. Threads and scratch memory are created when first needed. */
struct xm_chooser *xm_chooser_create(void);
void xm_chooser_free(struct xm_chooser *c); /* NULL is allowed */

/* Chooses a token for each entry of list[n]; each entry has its own text. If a row has NaN or
 * +infinity, is_sound becomes false, and neither token nor error is set. A failure of one entry is
 * stored in its `error`; the call fails only for lack of memory or threads. The clock records one
 * time for each token. Used by one thread at a time. */
enum xm_status xm_chooser_run(struct xm_chooser *c, struct xm_choice *list, size_t n,
                              uint64_t vocabulary, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
