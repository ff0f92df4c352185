/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/detokenizer.h"

#include "plugin/text/tokenizer_parts.h"

void
xm_detokenizer_init(struct xm_detokenizer *d, const struct xm_tokenizer *tokenizer,
                    bool skip_special)
{
    *d = (struct xm_detokenizer){.tokenizer = tokenizer, .skip_special = skip_special};
}

void
xm_detokenizer_free(struct xm_detokenizer *d)
{
    xm_token_decoder_state_free(&d->state);
}

enum xm_status
xm_detokenizer_push(struct xm_detokenizer *d, int32_t id, struct xm_strbuf *out,
                    struct xm_error *err)
{
    const struct xm_vocab_entry *entry = xm_vocab_get(&d->tokenizer->vocab, id);
    if (!entry || (d->skip_special && entry->special))
        return XM_OK;
    return xm_token_decoder_push(&d->tokenizer->decoder, &d->state, entry->text, out,
                                 err);
}

enum xm_status
xm_detokenizer_flush(struct xm_detokenizer *d, struct xm_strbuf *out,
                     struct xm_error *err)
{
    enum xm_status status =
        xm_token_decoder_flush(&d->tokenizer->decoder, &d->state, out, err);
    xm_token_decoder_state_free(&d->state);
    return status;
}
