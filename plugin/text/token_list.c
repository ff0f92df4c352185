/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/token_list.h"

#include <string.h>

#include "runtime/util/memory.h"

bool
xm_token_list_add_n(struct xm_token_list *list, const int32_t *ids, size_t n)
{
    if (n == 0)
        return true;
    if (n > SIZE_MAX - list->n)
        return false;
    int32_t *grown = xm_grow(list->ids, &list->capacity, list->n + n, sizeof(*grown));
    if (!grown)
        return false;
    list->ids = grown;
    memcpy(list->ids + list->n, ids, n * sizeof(*ids));
    list->n += n;
    return true;
}

bool
xm_token_list_add(struct xm_token_list *list, int32_t id)
{
    return xm_token_list_add_n(list, &id, 1);
}

void
xm_token_list_clear(struct xm_token_list *list)
{
    list->n = 0;
}

void
xm_token_list_free(struct xm_token_list *list)
{
    xm_free(list->ids);
    *list = (struct xm_token_list){0};
}

size_t
xm_same_tokens(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b)
{
    size_t n = 0;
    while (n < n_a && n < n_b && a[n] == b[n])
        n++;
    return n;
}
