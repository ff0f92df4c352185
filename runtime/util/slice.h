/* SPDX-License-Identifier: Apache-2.0
 *
 * A piece of text that may contain NUL bytes; the memory belongs to someone else. */
#ifndef XM_RUNTIME_UTIL_SLICE_H
#define XM_RUNTIME_UTIL_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/util/memory.h"

struct xm_slice {
    const char *text; /* not NUL-terminated */
    size_t n;         /* bytes              */
};

static inline struct xm_slice
xm_slice_of(const char *text, size_t n)
{
    struct xm_slice s;
    s.text = text;
    s.n = n;
    return s;
}

static inline bool
xm_slice_equal(struct xm_slice a, struct xm_slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.text, b.text, a.n) == 0);
}

static inline bool
xm_slice_starts_with(struct xm_slice s, struct xm_slice prefix)
{
    return s.n >= prefix.n && xm_slice_equal(xm_slice_of(s.text, prefix.n), prefix);
}

#endif
