/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts how often each token occurs in a text. The memory grows with the number of distinct
 * tokens, not with the vocabulary. Zero-initialise to use.
 */
#ifndef XM_PLUGIN_TEXT_TOKEN_COUNTS_H
#define XM_PLUGIN_TEXT_TOKEN_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/operations/token_choice.h"
#include "runtime/util/hash_index.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_token_counts {
    /* Owned; one entry for each distinct token, unordered. An entry's `before` is its `count` at
     * the last call of xm_token_counts_mark. */
    struct xm_token_count *entries;
    size_t n, capacity;
    struct xm_hash_index by_id; /* indexes `entries` by id */
};

/* Counts one occurrence; false: no memory. */
bool xm_token_counts_add(struct xm_token_counts *c, int32_t id);
/* Takes back one occurrence, which must have been added. */
void xm_token_counts_remove(struct xm_token_counts *c, int32_t id);
/* Marks all occurrences so far as belonging to the prompt: before = count. */
void xm_token_counts_mark(struct xm_token_counts *c);
void xm_token_counts_clear(struct xm_token_counts *c); /* keeps the memory */
void xm_token_counts_free(struct xm_token_counts *c);

#ifdef __cplusplus
}
#endif
#endif
