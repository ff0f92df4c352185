/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoders of one block of a weight to floats, one function for each row of weight_formats.def.
 * Results equal those of ggml's reference bit for bit: the order of roundings is part of a
 * format. */
#ifndef XM_RUNTIME_WEIGHT_DECODE_H
#define XM_RUNTIME_WEIGHT_DECODE_H

#include <stdint.h>

#define FORMAT(id, text, columns, bytes, meets)                                          \
    void xm_decode_##text(const uint8_t *block, float *out);
#include "runtime/weight_formats.def"

#endif
