/* SPDX-License-Identifier: Apache-2.0
 *
 * Token ids to text while they are generated.
 *
 * Only whole characters come out; what comes out of all pushes and the flush together is
 * what xm_tokenizer_decode() gives for all ids.
 */
#ifndef XM_PLUGIN_TEXT_DETOKENIZER_H
#define XM_PLUGIN_TEXT_DETOKENIZER_H

#include "plugin/text/token_decoder.h"
#include "plugin/text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_detokenizer {
    const struct xm_tokenizer *tokenizer; /* not owned; outlives this object */
    bool skip_special;
    struct xm_token_decoder_state state;
};

void xm_detokenizer_init(struct xm_detokenizer *d, const struct xm_tokenizer *tokenizer,
                         bool skip_special);
void xm_detokenizer_free(struct xm_detokenizer *d);

/* Appends the text that this id makes certain, often none or more than its own. */
enum xm_status xm_detokenizer_push(struct xm_detokenizer *d, int32_t id,
                                   struct xm_strbuf *out, struct xm_error *err);

/* Appends what is held back (U+FFFD for an unfinished character) and begins anew. */
enum xm_status xm_detokenizer_flush(struct xm_detokenizer *d, struct xm_strbuf *out,
                                    struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
