/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes synthetic language models of any dimensions, as OpenVINO IR or GGUF.
 *
 * A preset (plugin/models/presets.def), with some sizes replaced if the caller wishes, becomes a
 * struct xm_decoder, as readers make of files. It is written as the graph that exporters write,
 * with its side files in a folder, or as the tensors and keys of a GGUF file. Weights are random.
 * They are created in their quantised form and directly in the file: the memory does not depend on
 * the model's size.
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

/* A GGUF model's path is the file itself if it has this ending, else a folder. xm_synthetic_is_file
 * returns whether it has it. */
#define XM_SYNTHETIC_GGUF_ENDING ".gguf"
bool xm_synthetic_is_file(const char *path);

struct xm_synthetic {
    struct xm_preset sizes;
    enum xm_synthetic_format format;
    /* How matrices are stored: as ELEMENTS of the type `element`, or in blocks. Rows whose columns
     * are no multiple of a block's get a format with smaller blocks, as other quantisers do; tables
     * and, with MXFP4, all tensors but experts get 8 bits. */
    enum xm_weight_format blocks;
    enum xm_element element;
    uint32_t group; /* IR: columns per scale; 0: one scale per row */
    bool r1;        /* IR: the 4-D expert block of older exporters */
    bool blank;     /* no weights: the file has holes of their size (for planning) */
    bool keeps;     /* do not replace an existing model */
    uint64_t seed;
};

/* Sets *m to the small preset of Qwen3-MoE, as IR with u4 weights. */
void xm_synthetic_init(struct xm_synthetic *m);
/* Sets the weights' type by its name: "u4", "f16", "q4_k", … XM_INVALID: the file format does not
 * have it; the error message lists the types. */
enum xm_status xm_synthetic_set_weights(struct xm_synthetic *m, const char *text,
                                        struct xm_error *err);
/* Returns the largest group size, at most 64, that divides the columns of all matrices. */
uint32_t xm_synthetic_common_group(const struct xm_synthetic *m);
/* Fails with XM_INVALID if no model can be made with these dimensions. */
enum xm_status xm_synthetic_check(const struct xm_synthetic *m, struct xm_error *err);
/* Returns the approximate bytes of the weights of a model that xm_synthetic_check accepts. */
uint64_t xm_synthetic_bytes(const struct xm_synthetic *m);
/* Creates the folder (it may exist) and writes openvino_model.{xml,bin}, config.json,
 * generation_config.json and tokenizer.json, or model.gguf. An existing model stays until the new
 * one is complete and is then replaced (new_file.h). A failure leaves no partial files. XM_IO:
 * another process writes to the folder; or `keeps` is set, and a model exists or another process
 * writes the file. `progress` (may be NULL) gets the bytes written so far and all bytes. */
enum xm_status xm_synthetic_write(const struct xm_synthetic *m, const char *path,
                                  void (*progress)(uint64_t done, uint64_t all,
                                                   void *ctx),
                                  void *ctx, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
