/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling: how the hidden states of a text's tokens are combined to one vector, the text's
 * embedding. The model's files say which kind to use.
 */
#ifndef XM_PLUGIN_TEXT_POOLING_H
#define XM_PLUGIN_TEXT_POOLING_H

#include <stdbool.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_pooling {
    XM_POOLING_LAST, /* the last token's, which has attended to the whole text */
    XM_POOLING_MEAN, /* the mean over all tokens */
};
#define XM_POOLINGS "last mean" /* names of the kinds, for options */

/* Sets *out to the pooling named `name`. False: XM_POOLINGS does not have the name. */
bool xm_pooling_of(const char *name, enum xm_pooling *out);

/* Reads the folder's 1_Pooling/config.json, as sentence-transformers write it, and modules.json,
 * which refers to it. Without these files *out is XM_POOLING_LAST. XM_UNSUPPORTED: another kind of
 * pooling, or another module that changes embeddings after it; the error message names it. */
enum xm_status xm_pooling_load(const char *folder, enum xm_pooling *out,
                               struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
