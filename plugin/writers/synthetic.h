/* SPDX-License-Identifier: Apache-2.0
 *
 * Synthetic language models of any dimensions, as OpenVINO IR or GGUF.
 *
 * A preset (plugin/models/presets.def), with other sizes where they are given, becomes the decoder
 * that readers make of files, and is written: as the graph that exporters write, with its side
 * files in a folder, or as the tensors and keys of a GGUF file. Weights are random and born
 * quantised, straight in the file: memory does not depend on the model's size.
 */
#ifndef XM_PLUGIN_WRITERS_SYNTHETIC_H
#define XM_PLUGIN_WRITERS_SYNTHETIC_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin/models/presets.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_synthetic_format { XM_SYNTHETIC_IR, XM_SYNTHETIC_GGUF };

/* A folder or, of GGUF, the file itself where the path ends in this. */
#define XM_SYNTHETIC_GGUF_ENDING ".gguf"
bool xm_synthetic_is_file(const char *path);

struct xm_synthetic {
    struct xm_preset sizes;
    enum xm_synthetic_format format;
    /* Of matrices: ELEMENTS of a type, or blocks. Rows that blocks do not divide get a smaller
     * block, as other quantisers do; tables and, with MXFP4, all but experts get 8 bits. */
    enum xm_weight_format blocks;
    enum xm_element element;
    uint32_t group; /* IR: columns a scale; 0: one scale a row */
    bool r1;        /* IR: the 4-D expert block of older exporters */
    bool blank;     /* no weights: a file with holes of their size, for plans */
    bool keeps;     /* a model that is there is not replaced                  */
    uint64_t seed;
};

/* The small model of Qwen3-MoE, as IR with u4 weights. */
void xm_synthetic_init(struct xm_synthetic *m);
/* "u4", "f16", "q4_k", …, which the format must have. XM_INVALID: it is none; the sentence lists
 * them. */
enum xm_status xm_synthetic_set_weights(struct xm_synthetic *m, const char *text,
                                        struct xm_error *err);
/* The largest group up to 64 that divides all rows. */
uint32_t xm_synthetic_common_group(const struct xm_synthetic *m);
/* XM_INVALID: dimensions of which no model can be made. */
enum xm_status xm_synthetic_check(const struct xm_synthetic *m, struct xm_error *err);
/* Bytes of its weights, nearly, of a model that check accepts. */
uint64_t xm_synthetic_bytes(const struct xm_synthetic *m);
/* Creates the folder (it may exist) and writes openvino_model.{xml,bin}, config.json,
 * generation_config.json and tokenizer.json, or model.gguf. A model that is there stays as it is
 * until the new one is whole, and then is replaced (new_file.h). A failure leaves nothing half
 * behind. XM_IO: another process writes to the folder; or `keeps` is set, and a model is there or
 * another process writes the file.
 * `progress` (may be NULL) gets done and all bytes. */
enum xm_status xm_synthetic_write(const struct xm_synthetic *m, const char *path,
                                  void (*progress)(uint64_t done, uint64_t all,
                                                   void *ctx),
                                  void *ctx, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
