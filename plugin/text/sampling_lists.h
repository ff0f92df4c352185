/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the lists of a struct xm_sampling from texts and from tokens with biases, as users write
 * them. Zero-initialise to use.
 */
#ifndef XM_PLUGIN_TEXT_SAMPLING_LISTS_H
#define XM_PLUGIN_TEXT_SAMPLING_LISTS_H

#include "plugin/text/sampling.h"
#include "plugin/text/tokenizer.h"
#include "runtime/util/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_MOST_SAMPLING_TEXTS = 1024, XM_MOST_BIASES = 1 << 16 };

struct xm_sampling_lists {
    struct xm_token_bias *biases; /* owned */
    size_t n_biases, biases_room;
    /* token lists of the SET and SEQUENCES rows */
    struct xm_token_list of[XM_N_SAMPLING];
    size_t n_texts;
    bool said[XM_N_SAMPLING]; /* the row's list was given, possibly empty */
};
void xm_sampling_lists_free(struct xm_sampling_lists *l);

/* Adds a bias to the list. XM_INVALID: there are too many, or `bias` is NaN or too large; `l` is
 * unchanged. */
enum xm_status xm_sampling_add_bias(struct xm_sampling_lists *l, int32_t id, double bias,
                                    struct xm_error *err);
/* Adds biases from "15043+1,29871-0.5,2-inf". */
enum xm_status xm_sampling_read_biases(struct xm_sampling_lists *l, const char *text,
                                       struct xm_error *err);
/* Adds a text to row `at`, a SET or SEQUENCES of sampling.def. A SET gets all tokens that contain
 * the text or, if there is none, the last token of the text. SEQUENCES get the tokens of the text,
 * once with a space before it and once without. XM_INVALID: the text is empty or has no tokens, or
 * there are too many. */
enum xm_status xm_sampling_add_text(struct xm_sampling_lists *l, size_t at,
                                    const struct xm_tokenizer *tokenizer,
                                    struct xm_slice text, struct xm_error *err);
/* Points the members of *s to these lists, which must outlive it. If dry_multiplier is set and no
 * texts for dry_breakers were given, they default to line end, ':', '"' and '*'; `tokenizer` NULL:
 * no default. */
enum xm_status xm_sampling_take_lists(struct xm_sampling_lists *l,
                                      const struct xm_tokenizer *tokenizer,
                                      struct xm_sampling *s, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
