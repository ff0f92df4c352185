/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "plugin/readers/gguf_records.h"

int
xm_gguf_shown(struct xm_slice name)
{
    size_t n = name.n;
    if (n > XM_GGUF_SHOWN) {
        n = XM_GGUF_SHOWN;
        while (n && ((unsigned char)name.text[n] & 0xc0) == 0x80)
            n--;
    }
    return (int)n;
}

static int
compare(struct xm_slice a, struct xm_slice b)
{
    const int order = memcmp(a.text, b.text, a.n < b.n ? a.n : b.n);
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static struct xm_slice
name_of(const void *record)
{
    return *(const struct xm_slice *)record;
}

static int
compare_names(const void *a, const void *b)
{
    return compare(name_of(*(const void *const *)a), name_of(*(const void *const *)b));
}

static int
compare_with_name(const void *name, const void *record)
{
    return compare(name_of(name), name_of(*(const void *const *)record));
}

void
xm_gguf_sort_names(const void **records, uint64_t n, struct xm_slice *twice)
{
    *twice = (struct xm_slice){0};
    if (n)
        qsort(records, (size_t)n, sizeof(*records), compare_names);
    for (uint64_t i = 1; i < n; i++) {
        if (xm_slice_equal(name_of(records[i - 1]), name_of(records[i])))
            *twice = name_of(records[i]);
    }
}

const void *
xm_gguf_find_name(const void *const *sorted, uint64_t n, const char *name)
{
    const struct xm_slice key = xm_slice_of(name, strlen(name));
    const void *const *at =
        n ? bsearch(&key, sorted, (size_t)n, sizeof(*sorted), compare_with_name) : NULL;
    return at ? *at : NULL;
}
