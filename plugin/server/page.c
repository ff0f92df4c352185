/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/page.h"

#include <string.h>

#include "plugin/server/exchange.h"

const struct xm_page_file *
xm_page_find(const char *path)
{
    const size_t n = strcspn(path, "?");
    for (size_t i = 0; i < xm_n_page_files; i++) {
        const char *name = xm_page_files[i].path;
        if (strlen(name) == n && strncmp(name, path, n) == 0)
            return &xm_page_files[i];
    }
    return NULL;
}

void
xm_answer_page(struct xm_exchange *x)
{
    const struct xm_page_file *file = xm_page_find(x->request.path);
    xm_exchange_lock(x);
    xm_exchange_answer(x, 200, file->type, (const char *)file->bytes, file->n);
    xm_exchange_unlock(x);
}
