/* SPDX-License-Identifier: Apache-2.0
 *
 * llama-perplexity's file of a base model's distributions (--kl-divergence-base). Little-endian;
 * only rows are padded:
 *
 *     "_logits_" | u32 C | i32 V | i32 N | i32 tokens[N x C] | N x S rows
 *
 * N chunks of C tokens, of which positions C/2 … C - 2 are scored (S = C - 1 - C/2); V is the
 * vocabulary. A row is
 *
 *     f32 scale | f32 least | u16 q[V], and one more if V is odd
 *
 * and log p of token i is least + scale q[i]. A log p more than 16 below the largest is stored as
 * q = 0.
 */
#ifndef XM_PLUGIN_LOGITS_KLD_BASE_H
#define XM_PLUGIN_LOGITS_KLD_BASE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/util/new_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The shortest chunk that has a position to score. */
enum { XM_KLD_LEAST_CONTEXT = 4 };

/* Number of positions of a chunk that are scored. */
static inline uint32_t
xm_kld_scored(uint32_t context)
{
    return context - 1 - context / 2;
}

/* ---- reading ---- */

/* A file's content; points into the caller's bytes. */
struct xm_kld_base {
    uint32_t context, vocabulary, chunks;
    const uint8_t *tokens, *rows;
    uint64_t row_bytes;
};

/* Whether the file begins like one of these files. Does not register it as an input, which outputs
 * may not replace (mapped_file.h). */
bool xm_kld_base_is_file(const char *path);
enum xm_status xm_kld_base_read(const void *bytes, uint64_t n, struct xm_kld_base *out,
                                struct xm_error *err);
int32_t xm_kld_base_token(const struct xm_kld_base *b, uint32_t chunk, uint32_t i);

struct xm_kld_row {
    float scale, least;
    const uint8_t *q;
};
/* Returns the row of scored position i of a chunk. XM_INVALID: it has no log-probabilities. */
enum xm_status xm_kld_base_row(const struct xm_kld_base *b, uint32_t chunk, uint32_t i,
                               struct xm_kld_row *out, struct xm_error *err);
double xm_kld_row_log_p(const struct xm_kld_row *r, uint64_t token);

/* ---- writing ---- */

/* xm_kld_row_bytes returns the bytes of a row; xm_kld_row_encode encodes a row of logits, at least
 * one of which is finite. */
uint64_t xm_kld_row_bytes(uint32_t vocabulary);
void xm_kld_row_encode(const float *logits, uint32_t vocabulary, uint8_t *out);

/* Writes a temporary file beside the final one, and renames it when it is complete.
 * Zero-initialise. */
struct xm_kld_writer {
    FILE *f;
    struct xm_new_file at;
    uint32_t vocabulary;
    uint8_t *row;
};
/* Begins the file; `tokens`: [sizes->chunks][sizes->context]. */
enum xm_status xm_kld_writer_begin(struct xm_kld_writer *w, const char *path,
                                   const struct xm_kld_base *sizes, const int32_t *tokens,
                                   struct xm_error *err);
/* Appends the row of the next scored position. */
enum xm_status xm_kld_writer_add(struct xm_kld_writer *w, const float *logits,
                                 struct xm_error *err);
enum xm_status xm_kld_writer_end(struct xm_kld_writer *w, struct xm_error *err);
/* Frees the members, and removes the temporary file unless it was completed. */
void xm_kld_writer_free(struct xm_kld_writer *w);

#ifdef __cplusplus
}
#endif
#endif
