/* SPDX-License-Identifier: Apache-2.0
 *
 * How the hidden states of a text's tokens become one vector, its embedding, as a model's files
 * say it.
 */
#ifndef XM_PLUGIN_TEXT_POOLING_H
#define XM_PLUGIN_TEXT_POOLING_H

#include <stdbool.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_pooling {
    XM_POOLING_LAST, /* the last token's, which has seen the whole text */
    XM_POOLING_MEAN, /* the mean of all tokens'                         */
};
#define XM_POOLINGS "last mean" /* names, for options */

/* The pooling of a name of XM_POOLINGS. False: it is another name. */
bool xm_pooling_of(const char *name, enum xm_pooling *out);

/* Reads 1_Pooling/config.json of the folder, as sentence-transformers write it, and modules.json,
 * which names it. Without these files *out is XM_POOLING_LAST. XM_UNSUPPORTED: another pooling, or
 * another module behind it that changes embeddings, each named. */
enum xm_status xm_pooling_load(const char *folder, enum xm_pooling *out,
                               struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
