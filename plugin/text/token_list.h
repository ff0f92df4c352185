/* SPDX-License-Identifier: Apache-2.0
 *
 * A growable list of token ids. Zero-initialise to use.
 */
#ifndef XM_PLUGIN_TEXT_TOKEN_LIST_H
#define XM_PLUGIN_TEXT_TOKEN_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_token_list {
    int32_t *ids; /* owned; NULL while empty */
    size_t n;
    size_t capacity;
};

/* Append one id or n ids. False: no memory, and the list is unchanged. */
bool xm_token_list_add(struct xm_token_list *list, int32_t id);
bool xm_token_list_add_n(struct xm_token_list *list, const int32_t *ids, size_t n);
/* Returns the number of ids in the common prefix of a[n_a] and b[n_b]. */
size_t xm_same_tokens(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b);
void xm_token_list_clear(struct xm_token_list *list); /* n = 0; keeps the memory */
void xm_token_list_free(struct xm_token_list *list);

#ifdef __cplusplus
}
#endif
#endif
