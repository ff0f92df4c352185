/* SPDX-License-Identifier: Apache-2.0
 *
 * The symbols of dimensions whose value each run sets. Readers decide which dimensions of a model
 * these are; all other symbols belong to one model.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_SYMBOLS_H
#define XM_TRANSFORMATIONS_GRAPH_SYMBOLS_H

#define XM_SYMBOL_BATCH   "batch"   /* sequences of a run, of equal length */
#define XM_SYMBOL_TOKENS  "tokens"  /* new positions of each sequence */
#define XM_SYMBOL_PAST    "past"    /* positions before the new ones */
#define XM_SYMBOL_SAMPLES "samples" /* rows whose logits are wanted */

#endif
