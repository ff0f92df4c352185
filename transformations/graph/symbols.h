/* SPDX-License-Identifier: Apache-2.0
 *
 * The symbols of dimensions that a run gives numbers to, by what they count. Readers say which
 * dimensions of a model these are; all others are a model's own.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_SYMBOLS_H
#define XM_TRANSFORMATIONS_GRAPH_SYMBOLS_H

#define XM_SYMBOL_BATCH   "batch"   /* sequences of a run, of one length */
#define XM_SYMBOL_TOKENS  "tokens"  /* new positions of each */
#define XM_SYMBOL_PAST    "past"    /* positions before them */
#define XM_SYMBOL_SAMPLES "samples" /* rows whose logits are wanted */

#endif
