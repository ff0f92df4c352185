/* SPDX-License-Identifier: Apache-2.0
 *
 * Symbols of dimensions whose value each run sets. A reader decides which dimensions of a model
 * these are; other symbols have a meaning in one model only.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_SYMBOLS_H
#define XM_TRANSFORMATIONS_GRAPH_SYMBOLS_H

#define XM_SYMBOL_BATCH   "batch"   /* sequences of a run, of equal length */
#define XM_SYMBOL_TOKENS  "tokens"  /* new positions of each sequence */
#define XM_SYMBOL_PAST    "past"    /* positions before the new ones */
#define XM_SYMBOL_SAMPLES "samples" /* rows of logits that a run asks for */

#endif
