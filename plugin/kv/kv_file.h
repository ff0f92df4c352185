/* SPDX-License-Identifier: Apache-2.0
 *
 * The full pages of a sequence as bytes, for files. In this order:
 *
 *     struct xm_kv_file_head
 *     struct xm_kv_file_group [n_groups]
 *     for each group, for each of its layers: pages first … pages - 1
 *
 * Pages before a group's sliding window are omitted. The bytes can be read only by a pool with the
 * same layers and element types, and do not name them: whoever stores the bytes must also store
 * which model and options they belong to.
 */
#ifndef XM_PLUGIN_KV_KV_FILE_H
#define XM_PLUGIN_KV_KV_FILE_H

#include "plugin/kv/kv_sequence.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_kv_file_head {
    uint32_t n_groups, page_tokens;
    uint64_t pages;
};

struct xm_kv_file_group {
    uint64_t first;      /* first page stored; earlier ones have left the window   */
    uint64_t page_bytes; /* bytes of a page in all layers of the group             */
};

/* Returns the number of bytes that xm_kv_file_write would write now. */
uint64_t xm_kv_file_bytes(const struct xm_kv_sequence *s);
/* Returns the smallest n, a multiple of the page's positions, that xm_kv_file_read can read from
 * the bytes that would be written now. A token behind fewer positions would see pages that have
 * left the sliding window and are not written. */
uint64_t xm_kv_file_least(const struct xm_kv_sequence *s);
/* Takes the bytes that are written, in pieces, in order. */
struct xm_kv_sink {
    enum xm_status (*write)(void *ctx, const void *bytes, uint64_t n,
                            struct xm_error *err);
    void *ctx;
};
/* Writes the full pages. Waits for the device; no run may write to the pages meanwhile. */
enum xm_status xm_kv_file_write(const struct xm_kv_sequence *s,
                                const struct xm_kv_sink *to, struct xm_error *err);
/* Fills an empty sequence with the first n positions of the bytes; n is a multiple of the page's
 * positions, and ids[n] are their tokens, by which later prompts can find the pages. If the bytes
 * lack pages that n positions need (n is more than was written, or less than xm_kv_file_least), the
 * call succeeds and the sequence stays empty. It also stays empty after a failure. XM_INVALID: the
 * bytes were not written by a pool with these layers. */
enum xm_status xm_kv_file_read(struct xm_kv_sequence *s, const int32_t *ids, uint64_t n,
                               const uint8_t *bytes, uint64_t n_bytes,
                               struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
