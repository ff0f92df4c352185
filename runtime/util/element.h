/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types, and reading single elements of packed host data as float or int64.
 *
 * Sub-byte elements are packed little-end first: for 4 bits, the even index is the low
 * nibble. Data may lie at any byte offset, odd ones too; nothing here assumes alignment.
 */
#ifndef XM_RUNTIME_UTIL_ELEMENT_H
#define XM_RUNTIME_UTIL_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum xm_element {
#define ELEMENT(id, text, bits, cls, group) XM_##id,
#include "runtime/util/element.def"
    XM_ELEMENT_COUNT
};

const char *xm_element_text(enum xm_element e); /* "f16"; static */
uint32_t xm_element_bits(enum xm_element e);    /* 0 for dynamic and string */
bool xm_element_is_float(enum xm_element e);
bool xm_element_is_int(enum xm_element e); /* true for boolean, too */
/* By OpenVINO's spelling ("f16", "i64"), or the port precision of an IR ("FP16", "I64",
 * "BOOL"). Returns XM_ELEMENT_COUNT when there is no such type. */
enum xm_element xm_element_parse(const char *text);
/* Whether two texts are equal, ignoring the case of ASCII letters; independent of the locale. */
bool xm_same_but_case(const char *a, const char *b);

/* Bytes of n packed elements; false when that overflows or the type has no size. */
bool xm_element_bytes(enum xm_element e, uint64_t n, uint64_t *bytes);

/* Conversions of IEEE 754 binary16 and of bfloat16; to 16 bits they round to nearest even. */
float xm_half_to_float(uint16_t h);
uint16_t xm_float_to_half(float f);
float xm_bf16_to_float(uint16_t b);
uint16_t xm_float_to_bf16(float f);

/* A float below 16 bits: nf4 f4e2m1 f8e4m3 f8e5m2 f8e8m0. */
bool xm_element_is_small_float(enum xm_element e);
/* Whether xm_load_float and xm_load_int can read this type. */
bool xm_element_readable(enum xm_element e);
/* Whether xm_store_float and xm_store_int can write this type: readable types of at least 8 bits,
 * except small floats. */
bool xm_element_writable(enum xm_element e);
/* Element `i` of packed data of a readable type, converted as a C cast does. */
float xm_load_float(enum xm_element e, const void *data, uint64_t i);
int64_t xm_load_int(enum xm_element e, const void *data, uint64_t i);
/* Writes element `i`, converting (floats to integers truncate toward zero). Writable
 * types only. */
void xm_store_float(enum xm_element e, void *data, uint64_t i, float value);
void xm_store_int(enum xm_element e, void *data, uint64_t i, int64_t value);

#ifdef __cplusplus
}
#endif
#endif
