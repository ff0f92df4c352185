/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/element.h"

#include <math.h>
#include <string.h>

#include "runtime/util/compiler.h"
#include "runtime/util/memory.h"

enum element_class { NONE, INT, FLOAT };

static const struct {
    const char *text;
    uint32_t bits;
    enum element_class cls;
    uint32_t group;
} elements[XM_ELEMENT_COUNT] = {
#define ELEMENT(id, text, bits, cls, group) [XM_##id] = {text, bits, cls, group},
#include "runtime/util/element.def"
};

/* Spellings of IR port precisions other than our text in upper case. */
static const struct {
    const char *text;
    enum xm_element element;
} aliases[] = {
    {"FP16", XM_F16},
    {"FP32", XM_F32},
    {"FP64", XM_F64},
    {"BOOL", XM_BOOL},
    {"bool", XM_BOOL},
    {"BIN", XM_U1},
    {"UNSPECIFIED", XM_DYNAMIC},
    {"undefined", XM_DYNAMIC},
};

const char *
xm_element_text(enum xm_element e)
{
    return (unsigned)e < XM_ELEMENT_COUNT ? elements[e].text : "unknown";
}

uint32_t
xm_element_bits(enum xm_element e)
{
    return (unsigned)e < XM_ELEMENT_COUNT ? elements[e].bits : 0;
}

bool
xm_element_is_float(enum xm_element e)
{
    return (unsigned)e < XM_ELEMENT_COUNT && elements[e].cls == FLOAT;
}

bool
xm_element_is_int(enum xm_element e)
{
    return (unsigned)e < XM_ELEMENT_COUNT && elements[e].cls == INT;
}

bool
xm_same_but_case(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        char x = *a >= 'A' && *a <= 'Z' ? (char)(*a + 32) : *a;
        char y = *b >= 'A' && *b <= 'Z' ? (char)(*b + 32) : *b;
        if (x != y)
            return false;
    }
    return *a == *b;
}

enum xm_element
xm_element_parse(const char *text)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(aliases); i++) {
        if (strcmp(aliases[i].text, text) == 0)
            return aliases[i].element;
    }
    for (int e = 0; e < XM_ELEMENT_COUNT; e++) {
        if (xm_same_but_case(elements[e].text, text))
            return (enum xm_element)e;
    }
    return XM_ELEMENT_COUNT;
}

bool
xm_element_bytes(enum xm_element e, uint64_t n, uint64_t *bytes)
{
    uint64_t bits = 0;
    if (n > UINT64_MAX - 8 || xm_element_bits(e) == 0)
        return false;
    n = xm_align_up(n, elements[e].group);
    if (!xm_mul_size(n, xm_element_bits(e), &bits) || !xm_add_size(bits, 7, &bits))
        return false;
    *bytes = bits / 8;
    return true;
}

static float
float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static uint32_t
bits_of_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

float
xm_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = (h >> 10) & 0x1f, mantissa = h & 0x3ff;
    if (exponent == 0x1f)
        return float_of_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent == 0) {
        float f = ldexpf((float)mantissa, -24);
        return sign ? -f : f;
    }
    return float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t
xm_float_to_half(float f)
{
    uint32_t x = bits_of_float(f);
    uint32_t sign = (x >> 16) & 0x8000;
    x &= 0x7fffffff;
    if (x > 0x7f800000)
        return (uint16_t)(sign | 0x7e00); /* NaN */
    if (x >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00); /* rounds to infinity */
    /* subnormal: the addition rounds to multiples of 2^-24 */
    if (x < 0x38800000) {
        float rounded = float_of_bits(x) + 0.5f;
        return (uint16_t)(sign | (bits_of_float(rounded) - bits_of_float(0.5f)));
    }
    uint32_t odd = (x >> 13) & 1;
    x += 0xc8000fffu + odd; /* rebias the exponent by -112, round to nearest even */
    return (uint16_t)(sign | x >> 13);
}

float
xm_bf16_to_float(uint16_t b)
{
    return float_of_bits((uint32_t)b << 16);
}

uint16_t
xm_float_to_bf16(float f)
{
    uint32_t x = bits_of_float(f);
    if ((x & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(x >> 16 | 0x40);
    return (uint16_t)((x + 0x7fff + ((x >> 16) & 1)) >> 16);
}

bool
xm_element_is_small_float(enum xm_element e)
{
    return xm_element_is_float(e) && xm_element_bits(e) < 16;
}

bool
xm_element_writable(enum xm_element e)
{
    return xm_element_readable(e) && xm_element_bits(e) >= 8 &&
           !xm_element_is_small_float(e);
}

bool
xm_element_readable(enum xm_element e)
{
    switch (e) {
    case XM_DYNAMIC:
    case XM_STRING:
    case XM_U3:
    case XM_U6:
    case XM_ELEMENT_COUNT:
        return false;
    default:
        return true;
    }
}

static uint32_t
sub_byte(const void *data, uint64_t i, uint32_t bits)
{
    const uint8_t *p = data;
    uint64_t bit = i * bits;
    return (uint32_t)(p[bit / 8] >> (bit % 8)) & ((1u << bits) - 1);
}

int64_t
xm_load_int(enum xm_element e, const void *data, uint64_t i)
{
    const uint8_t *p = data;
    switch (e) {
#define LOAD(id, type)                                                                   \
    case id: {                                                                           \
        type v;                                                                          \
        memcpy(&v, p + i * sizeof(v), sizeof(v));                                        \
        return (int64_t)v;                                                               \
    }
        LOAD(XM_I8, int8_t)
        LOAD(XM_I16, int16_t)
        LOAD(XM_I32, int32_t)
        LOAD(XM_I64, int64_t)
        LOAD(XM_U8, uint8_t)
        LOAD(XM_U16, uint16_t)
        LOAD(XM_U32, uint32_t)
        LOAD(XM_U64, uint64_t)
#undef LOAD
    case XM_BOOL:
        return p[i] != 0;
    case XM_U1:
    case XM_U2:
    case XM_U4:
        return sub_byte(data, i, xm_element_bits(e));
    case XM_I4:
        return (int64_t)(sub_byte(data, i, 4) ^ 8) - 8;
    default:
        return (int64_t)xm_load_float(e, data, i);
    }
}

/* The values of nf4: quantiles of a normal distribution, as in QLoRA and OpenVINO. */
static const float nf4_numbers[16] = {
    -0x1p+0f,        -0x1.647362p-1f, -0x1.0cd66p-1f,  -0x1.94654p-2f,
    -0x1.23449ap-2f, -0x1.7a6a7ep-3f, -0x1.74f0e2p-4f, 0.0f,
    0x1.45f5fep-4f,  0x1.4995c6p-3f,  0x1.f809bap-3f,  0x1.5a0674p-2f,
    0x1.c3497p-2f,   0x1.200f56p-1f,  0x1.722766p-1f,  0x1p+0f,
};

/* Decodes a small float: a sign, exponent bits with bias `bias`, mantissa bits; no infinities, no
 * NaN. */
static float
float_of_fields(uint32_t code, int exponent_bits, int mantissa_bits, int bias)
{
    const int exponent = (int)(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const int mantissa = (int)code & ((1 << mantissa_bits) - 1);
    const bool is_normal = exponent != 0;
    const float f = ldexpf((float)(mantissa + (is_normal << mantissa_bits)),
                           exponent + !is_normal - bias - mantissa_bits);
    return code >> (exponent_bits + mantissa_bits) ? -f : f;
}

/* f8e4m3: its code of greatest magnitude, of both signs, is NaN. f8e5m2 is the upper half of an
 * f16. f8e8m0 is an exponent: 2^(code - 127), or NaN. */
static float
load_small_float(enum xm_element e, const uint8_t *p, uint64_t i)
{
    switch (e) {
    case XM_NF4:
        return nf4_numbers[sub_byte(p, i, 4)];
    case XM_F4E2M1:
        return float_of_fields(sub_byte(p, i, 4), 2, 1, 1);
    case XM_F8E4M3:
        return (p[i] & 0x7f) == 0x7f ? NAN : float_of_fields(p[i], 4, 3, 7);
    case XM_F8E5M2:
        return xm_half_to_float((uint16_t)(p[i] << 8));
    default:
        return p[i] == 0xff ? NAN : ldexpf(1.0f, p[i] - 127);
    }
}

float
xm_load_float(enum xm_element e, const void *data, uint64_t i)
{
    const uint8_t *p = data;
    uint16_t h;
    double d;
    float f;
    switch (e) {
    case XM_F32:
        memcpy(&f, p + i * sizeof(f), sizeof(f));
        return f;
    case XM_F64:
        memcpy(&d, p + i * sizeof(d), sizeof(d));
        return (float)d;
    case XM_F16:
        memcpy(&h, p + i * sizeof(h), sizeof(h));
        return xm_half_to_float(h);
    case XM_BF16:
        memcpy(&h, p + i * sizeof(h), sizeof(h));
        return xm_bf16_to_float(h);
    case XM_NF4:
    case XM_F4E2M1:
    case XM_F8E4M3:
    case XM_F8E5M2:
    case XM_F8E8M0:
        return load_small_float(e, p, i);
    default:
        return xm_element_is_int(e) && xm_element_readable(e)
                   ? (float)xm_load_int(e, data, i)
                   : NAN;
    }
}

void
xm_store_int(enum xm_element e, void *data, uint64_t i, int64_t value)
{
    uint8_t *p = data;
    switch (e) {
#define STORE(id, type)                                                                  \
    case id: {                                                                           \
        type v = (type)value;                                                            \
        memcpy(p + i * sizeof(v), &v, sizeof(v));                                        \
        return;                                                                          \
    }
        STORE(XM_I8, int8_t)
        STORE(XM_I16, int16_t)
        STORE(XM_I32, int32_t)
        STORE(XM_I64, int64_t)
        STORE(XM_U8, uint8_t)
        STORE(XM_U16, uint16_t)
        STORE(XM_U32, uint32_t)
        STORE(XM_U64, uint64_t)
#undef STORE
    case XM_BOOL:
        p[i] = value != 0;
        return;
    default:
        xm_store_float(e, data, i, (float)value);
    }
}

/* Converts to an integer. Values outside its range saturate, because the cast alone would be
 * undefined. */
static int64_t
truncate(float value)
{
    if (!(value > -9.2e18f)) /* NaN too */
        return value != value ? 0 : INT64_MIN;
    return value >= 9.2e18f ? INT64_MAX : (int64_t)value;
}

void
xm_store_float(enum xm_element e, void *data, uint64_t i, float value)
{
    uint8_t *p = data;
    uint16_t h;
    double d = (double)value;
    switch (e) {
    case XM_F32:
        memcpy(p + i * sizeof(value), &value, sizeof(value));
        return;
    case XM_F64:
        memcpy(p + i * sizeof(d), &d, sizeof(d));
        return;
    case XM_F16:
        h = xm_float_to_half(value);
        memcpy(p + i * sizeof(h), &h, sizeof(h));
        return;
    case XM_BF16:
        h = xm_float_to_bf16(value);
        memcpy(p + i * sizeof(h), &h, sizeof(h));
        return;
    case XM_BOOL:
        p[i] = value != 0.0f;
        return;
    default:
        if (xm_element_is_int(e) && xm_element_bits(e) >= 8)
            xm_store_int(e, data, i, truncate(value));
    }
}
