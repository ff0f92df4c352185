/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads which part of a split model a file is, and derives the names of the other parts.
 */
#include <inttypes.h>
#include <stdio.h>

#include "plugin/readers/gguf_records.h"

enum { MOST_PARTS = 65535, SUFFIX = 64 };

static enum xm_status
read_key(const struct xm_gguf_part *p, const char *name, uint64_t most, uint64_t *out,
         struct xm_error *err)
{
    const struct xm_gguf_key *k = xm_gguf_find_name(p->keys_by_name, p->n_keys, name);
    return k ? xm_gguf_whole(k, most, out, err) : XM_OK;
}

enum xm_status
xm_gguf_find_split(const struct xm_gguf_part *p, struct xm_gguf_split *out,
                   struct xm_error *err)
{
    *out = (struct xm_gguf_split){.count = 1, .n_tensors = UINT64_MAX};
    XM_TRY(read_key(p, "split.no", MOST_PARTS, &out->number, err));
    XM_TRY(read_key(p, "split.count", MOST_PARTS, &out->count, err));
    XM_TRY(read_key(p, "split.tensors.count", INT64_MAX, &out->n_tensors, err));
    if (out->count == 0) /* some writers mean "not split" by 0 */
        out->count = 1;
    if (out->number < out->count)
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "key 'split.no': expected less than the number of parts, %" PRIu64
                   ", found %" PRIu64,
                   out->count, out->number);
}

static void
suffix(uint64_t i, uint64_t count, char out[SUFFIX])
{
    snprintf(out, SUFFIX, "-%05" PRIu64 "-of-%05" PRIu64 ".gguf", i + 1, count);
}

enum xm_status
xm_gguf_part_path(const char *path, const struct xm_gguf_split *of, uint64_t i,
                  struct xm_arena *arena, const char **out, struct xm_error *err)
{
    char mine[SUFFIX], others[SUFFIX];
    suffix(of->number, of->count, mine);
    suffix(i, of->count, others);
    const size_t n = strlen(path), n_mine = strlen(mine);
    if (n < n_mine || strcmp(path + n - n_mine, mine) != 0)
        return xm_fail(err, XM_INVALID,
                       "it is part %" PRIu64 " of %" PRIu64
                       ": expected a file name that ends in '%s', by which the other "
                       "parts are found",
                       of->number + 1, of->count, mine);
    *out = xm_arena_printf(arena, "%.*s%s", (int)(n - n_mine), path, others);
    return *out ? XM_OK : xm_no_memory(err, "a path");
}
