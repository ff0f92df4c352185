/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes token ids one by one while they are generated.
 *
 * Each call returns whole characters only. The texts that all pushes and the flush return, joined,
 * are what xm_tokenizer_decode() returns for all ids. An object belongs to one text and one thread
 * at a time.
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

/* Takes the next id and appends the text that is now final: possibly nothing, while a character is
 * incomplete, possibly text of earlier ids, too. */
enum xm_status xm_detokenizer_push(struct xm_detokenizer *d, int32_t id,
                                   struct xm_strbuf *out, struct xm_error *err);

/* Ends the text: appends the text held back (U+FFFD for an incomplete character) and resets the
 * object for the next text. */
enum xm_status xm_detokenizer_flush(struct xm_detokenizer *d, struct xm_strbuf *out,
                                    struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
