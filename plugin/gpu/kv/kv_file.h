/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole pages of a sequence as bytes, for files. In order:
 *
 *     struct xm_kv_file_head
 *     struct xm_kv_file_group [n_groups]
 *     of each group, of each of its layers: pages first … pages - 1
 *
 * Pages that a window has left behind are not there. The bytes mean something to a pool of the same
 * layers and element types only; who keeps them also keeps whose they are.
 */
#ifndef XM_PLUGIN_GPU_KV_KV_FILE_H
#define XM_PLUGIN_GPU_KV_KV_FILE_H

#include "plugin/gpu/kv/kv_sequence.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_kv_file_head {
    uint32_t n_groups, page_tokens;
    uint64_t pages;
};

struct xm_kv_file_group {
    uint64_t first;      /* page that it has; the ones before have left the window */
    uint64_t page_bytes; /* of all layers of the group                             */
};

/* The bytes that xm_kv_file_write writes for the positions that the sequence holds now. */
uint64_t xm_kv_file_bytes(const struct xm_kv_sequence *s);
/* The fewest positions, whole pages, that xm_kv_file_read can take from what is written now: fewer
 * see pages that a window has left behind. */
uint64_t xm_kv_file_least(const struct xm_kv_sequence *s);
/* Where the bytes go, in pieces, in order. */
struct xm_kv_sink {
    enum xm_status (*write)(void *ctx, const void *bytes, uint64_t n,
                            struct xm_error *err);
    void *ctx;
};
/* Writes the pages that are whole. Waits for the device; no run may write to them meanwhile. */
enum xm_status xm_kv_file_write(const struct xm_kv_sequence *s,
                                const struct xm_kv_sink *to, struct xm_error *err);
/* Fills an empty sequence with the first n positions, whole pages, which are those of the tokens
 * ids[n]; later prompts find them. The sequence stays empty where pages of a window are missing for
 * n positions, and after a failure. XM_INVALID: the bytes are not of such a pool. */
enum xm_status xm_kv_file_read(struct xm_kv_sequence *s, const int32_t *ids, uint64_t n,
                               const uint8_t *bytes, uint64_t n_bytes,
                               struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
