/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of weights as floats, one function a format of weight_formats.def. Bit for bit what
 * ggml's reference makes of them: the order of the roundings is part of the format.
 */
#ifndef XM_RUNTIME_WEIGHT_DECODE_H
#define XM_RUNTIME_WEIGHT_DECODE_H

#include <stdint.h>

#define FORMAT(id, text, columns, bytes, meets)                                          \
    void xm_decode_##text(const uint8_t *block, float *out);
#include "runtime/weight_formats.def"

#endif
