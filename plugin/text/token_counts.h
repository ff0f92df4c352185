/* SPDX-License-Identifier: Apache-2.0
 *
 * How often tokens occur in a text. Its size follows the number of different tokens, not the
 * vocabulary's. Zero-initialise to use.
 */
#ifndef XM_PLUGIN_TEXT_TOKEN_COUNTS_H
#define XM_PLUGIN_TEXT_TOKEN_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_token_count {
    int32_t id;
    uint32_t count;  /* 0: none, and the entry may be empty             */
    uint32_t before; /* of them, when xm_token_counts_mark was called   */
};

/* A hash table with open addressing; its users go over all entries and skip those of count 0. */
struct xm_token_counts {
    struct xm_token_count *entries; /* owned */
    size_t capacity;                /* a power of two, or 0 */
    size_t used;                    /* entries that have an id */
};

bool xm_token_counts_add(struct xm_token_counts *c, int32_t id); /* false: no memory */
void xm_token_counts_remove(struct xm_token_counts *c,
                            int32_t id); /* one that was added */
/* All that is there is from before. */
void xm_token_counts_mark(struct xm_token_counts *c);
void xm_token_counts_clear(struct xm_token_counts *c); /* keeps the memory */
void xm_token_counts_free(struct xm_token_counts *c);

#ifdef __cplusplus
}
#endif
#endif
