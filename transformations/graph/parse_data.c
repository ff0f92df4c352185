/* SPDX-License-Identifier: Apache-2.0
 *
 * Constants and shape values of graph text. The bytes of a constant are in the text, come from the
 * caller or a file, or are a pattern.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/number.h"
#include "transformations/graph/parse.h"
#include "transformations/graph/text_files.h"
#include "transformations/graph/text_format.h"

enum xm_status
xm_parse_allocate(struct xm_parser *p, enum xm_element e, uint64_t n,
                  struct xm_bytes *out)
{
    uint8_t *bytes;
    if (!xm_element_bytes(e, n, &out->n) || out->n > p->data_left)
        return xm_lex_fail(&p->lex, "the text declares more than %d MiB of constants",
                           XM_TEXT_MOST_DATA >> 20);
    p->data_left -= out->n;
    bytes = xm_arena_alloc(&p->g->arena, out->n);
    out->p = bytes;
    return bytes ? XM_OK : xm_parse_no_memory(p);
}

/* Bits of two 4-bit elements or one 8-bit element; 8-bit floats get magnitudes below 2 and no
 * NaN. */
static uint8_t
small_bits(enum xm_element e, uint32_t random)
{
    if (e == XM_F8E8M0)
        return (uint8_t)(120 + random % 8);
    return (uint8_t)(e == XM_F8E4M3 || e == XM_F8E5M2 ? random & 0xbf : random);
}

/* Fills b with a pattern that depends only on `number`: floats are multiples of 1/8 in [-1, 1),
 * integers any bits. */
static void
fill_pattern(enum xm_element e, uint64_t number, uint64_t n, struct xm_bytes b)
{
    uint32_t x = (uint32_t)number * 2654435761u + 12345;
    bool is_float = xm_element_is_float(e) && xm_text_is_inline(e);
    for (uint64_t i = 0; i < (is_float ? n : b.n); i++) {
        x = x * 1664525u + 1013904223u;
        if (is_float)
            xm_store_float(e, (uint8_t *)b.p, i, (float)((int)(x >> 28) - 8) / 8.0f);
        else
            ((uint8_t *)b.p)[i] = e == XM_BOOL ? x >> 31 : small_bits(e, x >> 24);
    }
}

enum xm_status
xm_parse_pattern(struct xm_parser *p, enum xm_element e, uint64_t n, uint64_t number,
                 struct xm_bytes *out)
{
    XM_TRY(xm_parse_allocate(p, e, n, out));
    fill_pattern(e, number, n, *out);
    return XM_OK;
}

/* Gets the bytes of constant `number` from the caller. */
static enum xm_status
find_constant(struct xm_parser *p, enum xm_element e, uint64_t n, uint64_t number,
              struct xm_bytes *out)
{
    struct xm_data data = {0};
    struct xm_error why = {0};
    uint64_t n_bytes;
    if (!xm_element_bytes(e, n, &n_bytes))
        return xm_lex_fail(&p->lex, "the size of the constant overflows");
    if (p->blobs->constant(p->blobs->ctx, (uint32_t)number, n_bytes, &data, &why) !=
        XM_OK)
        return xm_lex_pass_on(&p->lex, &why);
    if (data.n_bytes < n_bytes)
        return xm_lex_fail(&p->lex, "constant @%u has %llu bytes, not %llu",
                           (unsigned)number, (unsigned long long)data.n_bytes,
                           (unsigned long long)n_bytes);
    *out = (struct xm_bytes){data.bytes, data.n_bytes};
    return XM_OK;
}

/* Gets the bytes of a constant from a file; bytes that are in no file are a pattern. */
static enum xm_status
place_constant(struct xm_parser *p, enum xm_element e, uint64_t n, uint64_t number,
               struct xm_bytes *out)
{
    struct xm_text_places places;
    uint64_t n_bytes;
    XM_TRY(xm_text_parse_places(&p->lex, p->g, &places));
    *out = places.part[XM_TEXT_DATA];
    if (!out->p)
        return xm_parse_pattern(p, e, n, number, out);
    if (!xm_element_bytes(e, n, &n_bytes) || out->n < n_bytes)
        return xm_lex_fail(&p->lex,
                           "constant @%u has %llu bytes in the file, which are too few",
                           (unsigned)number, (unsigned long long)out->n);
    return XM_OK;
}

static enum xm_status
parse_element(struct xm_parser *p, enum xm_element e, uint8_t *bytes, uint64_t i)
{
    char word[XM_LEX_WORD], *end;
    XM_TRY(xm_lex_word(&p->lex, "a number", word));
    errno = 0;
    if (e == XM_F64) {
        double x = xm_parse_double(word, &end);
        memcpy(bytes + i * sizeof(x), &x, sizeof(x));
    } else if (xm_element_is_float(e)) {
        xm_store_float(e, bytes, i, xm_parse_float(word, &end));
    } else {
        xm_store_int(e, bytes, i, strtoll(word, &end, 10));
        if (errno)
            return xm_lex_fail(&p->lex, "'%s' exceeds 64 bits", word);
    }
    return *end ? xm_lex_fail(&p->lex, "'%s' is not a number", word) : XM_OK;
}

static enum xm_status
parse_elements(struct xm_parser *p, enum xm_element e, uint64_t n, struct xm_bytes *out)
{
    if (!xm_text_is_inline(e))
        return xm_lex_fail(&p->lex, "constants of type %s cannot be written in braces",
                           xm_element_text(e));
    XM_TRY(xm_parse_allocate(p, e, n, out));
    for (uint64_t i = 0; i < n; i++) {
        if (i > 0)
            XM_TRY(xm_lex_expect(&p->lex, ','));
        XM_TRY(parse_element(p, e, (uint8_t *)out->p, i));
    }
    return xm_lex_expect(&p->lex, '}');
}

enum xm_status
xm_parse_count_elements(struct xm_parser *p, const struct xm_type *t, uint64_t *out)
{
    return xm_static_elements(&t->shape, out)
               ? XM_OK
               : xm_lex_fail(&p->lex, "the shape of a constant must be constant");
}

static enum xm_status
parse_const(struct xm_parser *p, struct xm_parsed_line *line)
{
    enum xm_element e = line->declared.element;
    struct xm_bytes b = {(const uint8_t *)"", 0};
    uint64_t n, number;
    XM_TRY(xm_parse_count_elements(p, &line->declared, &n));
    if (xm_lex_take(&p->lex, '{')) {
        XM_TRY(parse_elements(p, e, n, &b));
    } else {
        XM_TRY(xm_lex_expect(&p->lex, '@'));
        XM_TRY(xm_lex_number(&p->lex, UINT32_MAX, &number));
        if (e != XM_STRING)
            XM_TRY(p->blobs ? find_constant(p, e, n, number, &b)
                   : xm_text_places_follow(&p->lex)
                       ? place_constant(p, e, n, number, &b)
                       : xm_parse_pattern(p, e, n, number, &b));
    }
    line->attr.data = (struct xm_data){b.p, b.n};
    return XM_OK;
}

static enum xm_status
parse_shape_value(struct xm_parser *p, struct xm_parsed_line *line)
{
    struct xm_dim e[XM_MAX_CONTENT], *copy;
    uint32_t n = 0;
    XM_TRY(xm_lex_expect(&p->lex, '{'));
    while (!xm_lex_take(&p->lex, '}')) {
        if (n == XM_MAX_CONTENT)
            return xm_lex_fail(&p->lex, "a shape value has more than %d elements",
                               XM_MAX_CONTENT);
        if (n > 0)
            XM_TRY(xm_lex_expect(&p->lex, ','));
        XM_TRY(xm_lex_dim(&p->lex, &p->g->dims, &e[n++]));
    }
    copy = xm_arena_alloc(&p->g->arena, (n + 1) * sizeof(*copy));
    if (!copy)
        return xm_parse_no_memory(p);
    memcpy(copy, e, n * sizeof(*copy));
    line->attr.shape_value = (struct xm_content){n, copy};
    return XM_OK;
}

enum xm_status
xm_parse_data(struct xm_parser *p, struct xm_parsed_line *line)
{
    switch (line->op) {
    case XM_OP_CONST:
        return parse_const(p, line);
    case XM_OP_WEIGHT:
        return xm_parse_weight(p, line);
    case XM_OP_SHAPE_VALUE:
        return parse_shape_value(p, line);
    default:
        return XM_OK;
    }
}
