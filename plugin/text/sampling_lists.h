/* SPDX-License-Identifier: Apache-2.0
 *
 * The lists of a struct xm_sampling, made from what people write: texts, and tokens with biases.
 * Zero-initialise to use.
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
    struct xm_token_list of[XM_N_SAMPLING]; /* of the rows SET and SEQUENCES */
    size_t n_texts;
    bool said[XM_N_SAMPLING]; /* somebody gave texts of this row, or none of them */
};
void xm_sampling_lists_free(struct xm_sampling_lists *l);

/* Adds a bias to the list. XM_INVALID: too many, or no number; `l` is unchanged. */
enum xm_status xm_sampling_add_bias(struct xm_sampling_lists *l, int32_t id, double bias,
                                    struct xm_error *err);
/* Adds biases from "15043+1,29871-0.5,2-inf". */
enum xm_status xm_sampling_read_biases(struct xm_sampling_lists *l, const char *text,
                                       struct xm_error *err);
/* Adds a text of row `at`, a SET or SEQUENCES of sampling.def. A SET gets the tokens that have the
 * text in them or, where none does, the last one of the text; SEQUENCES get the text's tokens, with
 * a space before it and without. XM_INVALID: the text is empty or has no tokens, or there are too
 * many. */
enum xm_status xm_sampling_add_text(struct xm_sampling_lists *l, size_t at,
                                    const struct xm_tokenizer *tokenizer,
                                    struct xm_slice text, struct xm_error *err);
/* Points the members of *s to these lists, which must outlive it. With dry_multiplier and no texts
 * of dry_breakers said, those are the end of a line, ':', '"' and '*'; `tokenizer` NULL: none. */
enum xm_status xm_sampling_take_lists(struct xm_sampling_lists *l,
                                      const struct xm_tokenizer *tokenizer,
                                      struct xm_sampling *s, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
