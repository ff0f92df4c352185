/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the synthetic models: what synthetic.c and its parts share.
 */
#ifndef XM_PLUGIN_WRITERS_SYNTH_H
#define XM_PLUGIN_WRITERS_SYNTH_H

#include "plugin/writers/bin_file.h"
#include "plugin/writers/synthetic.h"

struct xm_synth {
    const struct xm_synthetic *m;
    struct xm_arena arena; /* the decoder's layers */
    struct xm_decoder d;
    struct xm_bin_file bin;
    uint64_t random; /* state of the generator, never 0 */
    uint64_t all_bytes;
    void (*progress)(uint64_t done, uint64_t all, void *ctx);
    void *ctx;
    struct xm_error *err;
};

/* ---- synthetic.c --------------------------------------------------------------------- */

/* Calls `one` for each tensor that the decoder has: those of the layers, then the model's. */
enum xm_status xm_synth_each_tensor(struct xm_synth *s, void *ctx,
                                    enum xm_status (*one)(struct xm_synth *s, void *ctx,
                                                          enum xm_decoder_tensor t,
                                                          uint32_t layer));

/* ---- synth_random.c ------------------------------------------------------------------ */

uint64_t xm_synth_next(struct xm_synth *s);
/* In (-1, 1). */
float xm_synth_uniform(struct xm_synth *s);
/* Random bytes, n that are part of the file. */
void xm_synth_fill(struct xm_synth *s, uint8_t *p, uint64_t n);
/* Elements f32, f16 or bf16 of standard deviation a / sqrt(3). */
void xm_synth_fill_floats(struct xm_synth *s, enum xm_element e, uint8_t *p, uint64_t n,
                          float a);
/* A vector's n numbers: norms and scales are ones, biases small, rope_freqs those of partial
 * rotation. */
void xm_synth_vector(struct xm_synth *s, enum xm_decoder_tensor t, uint64_t n,
                     float *out);
/* Rows of blocks of unit gain. */
void xm_synth_fill_blocks(struct xm_synth *s, enum xm_weight_format f, uint8_t *p,
                          uint64_t rows, uint64_t cols);
/* Whether there is a rule for such blocks. */
bool xm_synth_has_blocks(enum xm_weight_format f);

/* ---- synth_ir.c, synth_gguf.c, synth_side_files.c ------------------------------------- */

/* Bytes of a tensor's weights in IR. */
uint64_t xm_synth_ir_bytes(const struct xm_synth *s, enum xm_decoder_tensor t,
                           uint32_t layer);
enum xm_status xm_synth_write_ir(struct xm_synth *s, const char *folder);

uint64_t xm_synth_gguf_bytes(const struct xm_synth *s, enum xm_decoder_tensor t,
                             uint32_t layer);
/* XM_IO: also where another process writes the same file, unless it is to be replaced.
 * is_in_locked_folder: the caller holds the lock of its folder. */
enum xm_status xm_synth_write_gguf(struct xm_synth *s, const char *path,
                                   bool is_in_locked_folder);

/* XM_IO: the model keeps what is there, and a file is at `path`. */
enum xm_status xm_synth_check_place(const struct xm_synth *s, const char *path);

/* tokenizer.json, config.json and generation_config.json. */
enum xm_status xm_synth_write_side_files(const struct xm_synth *s, const char *folder);
/* The character that byte-level BPE writes for a byte. */
uint32_t xm_synth_byte_character(uint32_t byte);
enum {
    XM_SYNTH_END = 256
}; /* the id of <|endoftext|>: bytes are before it, words behind */

#endif
