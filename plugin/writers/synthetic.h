/* SPDX-License-Identifier: Apache-2.0
 *
 * Synthetic language models of any dimensions, in the form that exporters write.
 *
 * The graph of a decoder with mixture-of-experts layers is built operation by operation as an
 * exporter would, weights are random and born quantised, straight in the file: memory does not
 * depend on the model's size. What comes out is an ordinary model folder: IR, configs, tokenizer.
 */
#ifndef XM_PLUGIN_WRITERS_SYNTHETIC_H
#define XM_PLUGIN_WRITERS_SYNTHETIC_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/element.h"
#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_synthetic {
    uint32_t hidden, layers, experts, top_k, moe_intermediate;
    uint32_t heads, kv_heads, head_dim, vocabulary;
    enum xm_element
        weights;    /* u4 i4 u8 i8 f16                                           */
    uint32_t group; /* columns a scale; 0: one scale a row                       */
    bool r1;        /* the 4-D expert block of older exporters                    */
    bool blank;     /* no weights: a file with holes of their size, for plans    */
    uint64_t seed;
};

/* Sensible small values. */
void xm_synthetic_init(struct xm_synthetic *m);
/* Bytes of the weights file, nearly. */
uint64_t xm_synthetic_bytes(const struct xm_synthetic *m);
/* XM_INVALID: dimensions of which no model can be made. */
enum xm_status xm_synthetic_check(const struct xm_synthetic *m, struct xm_error *err);
/* What is being written ends in this; it gets its name when all of it is there. */
#define XM_SYNTHETIC_PART ".part"
/* Creates `folder` (it may exist) and writes openvino_model.{xml,bin}, config.json,
 * generation_config.json and tokenizer.json. A model that is there stays as it is until the new
 * weights and graph are whole; they then replace its own one after the other. A failure leaves
 * nothing half behind. `progress` (may be NULL) gets done and all bytes. */
enum xm_status xm_synthetic_write(const struct xm_synthetic *m, const char *folder,
                                  void (*progress)(uint64_t done, uint64_t all,
                                                   void *ctx),
                                  void *ctx, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
