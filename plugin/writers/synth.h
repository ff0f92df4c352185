/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to synthetic.c, synth_*.c: their shared state and functions.
 */
#ifndef XM_PLUGIN_WRITERS_SYNTH_H
#define XM_PLUGIN_WRITERS_SYNTH_H

#include "plugin/writers/bin_file.h"
#include "plugin/writers/synthetic.h"

struct xm_synth {
    const struct xm_synthetic *m;
    struct xm_arena arena; /* memory of the decoder's layers */
    struct xm_decoder d;
    struct xm_bin_file bin;
    uint64_t random; /* state of the random generator; never 0 */
    uint64_t all_bytes;
    void (*progress)(uint64_t done, uint64_t all, void *ctx);
    void *ctx;
    struct xm_error *err;
};

/* ---- synthetic.c --------------------------------------------------------------------- */

/* Calls `one` for each tensor of the decoder: first those of the layers, then those outside of
 * layers. */
enum xm_status xm_synth_each_tensor(struct xm_synth *s, void *ctx,
                                    enum xm_status (*one)(struct xm_synth *s, void *ctx,
                                                          enum xm_decoder_tensor t,
                                                          uint32_t layer));

/* ---- synth_random.c ------------------------------------------------------------------ */

uint64_t xm_synth_next(struct xm_synth *s);
/* Returns a random number in (-1, 1). */
float xm_synth_uniform(struct xm_synth *s);
/* Fills n bytes of the file with random bytes. */
void xm_synth_fill(struct xm_synth *s, uint8_t *p, uint64_t n);
/* Fills n elements (f32, f16 or bf16) with random numbers of standard deviation a / sqrt(3). */
void xm_synth_fill_floats(struct xm_synth *s, enum xm_element e, uint8_t *p, uint64_t n,
                          float a);
/* Makes the n numbers of a vector: norms and scales are ones, biases are small, rope_freqs rotate a
 * quarter of the pairs. */
void xm_synth_vector(struct xm_synth *s, enum xm_decoder_tensor t, uint64_t n,
                     float *out);
/* Fills rows with random blocks, scaled so that a product with the matrix keeps the standard
 * deviation (unit gain). */
void xm_synth_fill_blocks(struct xm_synth *s, enum xm_weight_format f, uint8_t *p,
                          uint64_t rows, uint64_t cols);
/* Returns whether xm_synth_fill_blocks supports the format. */
bool xm_synth_has_blocks(enum xm_weight_format f);

/* ---- synth_ir.c, synth_gguf.c, synth_side_files.c ------------------------------------- */

/* Return the bytes of a tensor's weights, in IR or in GGUF. */
uint64_t xm_synth_ir_bytes(const struct xm_synth *s, enum xm_decoder_tensor t,
                           uint32_t layer);
enum xm_status xm_synth_write_ir(struct xm_synth *s, const char *folder);

uint64_t xm_synth_gguf_bytes(const struct xm_synth *s, enum xm_decoder_tensor t,
                             uint32_t layer);
/* Writes the GGUF file. XM_IO also if another process writes the same file, unless an existing file
 * is to be replaced. is_in_locked_folder: the caller holds the lock of the folder. */
enum xm_status xm_synth_write_gguf(struct xm_synth *s, const char *path,
                                   bool is_in_locked_folder);

/* Fails with XM_IO if `keeps` is set and there is a file at `path`. */
enum xm_status xm_synth_check_place(const struct xm_synth *s, const char *path);

/* Writes tokenizer.json, config.json and generation_config.json. */
enum xm_status xm_synth_write_side_files(const struct xm_synth *s, const char *folder);
/* Returns the character that byte-level BPE writes for a byte. */
uint32_t xm_synth_byte_character(uint32_t byte);
enum {
    XM_SYNTH_END = 256
}; /* the id of <|endoftext|>: the tokens of single bytes are before it, words behind */

#endif
