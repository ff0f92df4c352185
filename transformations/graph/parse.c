/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph text to graph. Each line is read into a `struct line`, then built through the
 * builder, so that text has to satisfy the same checks as any reader's graph; the types
 * it states are compared with those the shape functions give.
 *
 * Bounds against hostile text: memory grows with the length of the text, and data that
 * the text only declares (@7) with XM_TEXT_MOST_DATA in all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/number.h"
#include "transformations/graph/builder.h"
#include "transformations/graph/infer.h"
#include "transformations/graph/lexer.h"
#include "transformations/graph/text.h"
#include "transformations/graph/text_files.h"
#include "transformations/graph/text_format.h"

enum {
    MAX_NUMBER = 1 << 22, /* of values: %4194303 */
    MAX_NAMES = 64,       /* tensor names of one value */
    MAX_OPERANDS = 4096
};

struct parser {
    struct xm_lexer lex;
    struct xm_graph *g;
    struct xm_builder b;
    struct xm_value **values; /* by number */
    uint64_t n_values;
    struct xm_value **operands; /* of the line; MAX_OPERANDS */
    uint64_t data_left;
    const struct xm_text_blobs *blobs; /* NULL: patterns */
    bool opens_files;                  /* that the text names */
};

/* What one line says about a node. */
struct line {
    uint64_t number, n_results; /* "%5, %6 =" */
    enum xm_op op;
    struct xm_type declared;
    uint32_t n_in;
    union xm_attr attr;
    uint64_t attrs_seen; /* bit i: row i of the op's attributes */
    const char *name;
};

static enum xm_status
fail_memory(struct parser *p)
{
    return xm_fail(p->lex.err, XM_NO_MEMORY, "out of memory to parse a graph");
}

/* ---- numbers of values ------------------------------------------------------------- */

/* "%5, %6 =": consecutive numbers. */
static enum xm_status
parse_results(struct parser *p, struct line *line)
{
    uint64_t number;
    line->n_results = 0;
    while (xm_lex_peek(&p->lex) == '%') {
        p->lex.at++;
        XM_TRY(xm_lex_number(&p->lex, MAX_NUMBER - 1, &number));
        if (line->n_results == 0)
            line->number = number;
        else if (number != line->number + line->n_results)
            return xm_lex_fail(&p->lex, "the numbers of results must follow each other");
        if (number < p->n_values && p->values[number])
            return xm_lex_fail(&p->lex, "the value %%%u exists already",
                               (unsigned)number);
        line->n_results++;
        if (!xm_lex_take(&p->lex, ','))
            break;
    }
    return line->n_results ? xm_lex_expect(&p->lex, '=') : XM_OK;
}

static enum xm_status
remember(struct parser *p, uint64_t number, struct xm_value *v)
{
    if (number >= p->n_values) {
        uint64_t n = number * 2 + 64;
        struct xm_value **grown = xm_realloc(p->values, n * sizeof(*grown));
        if (!grown)
            return fail_memory(p);
        memset(grown + p->n_values, 0, (n - p->n_values) * sizeof(*grown));
        p->values = grown;
        p->n_values = n;
    }
    p->values[number] = v;
    return XM_OK;
}

static enum xm_status
parse_operand(struct parser *p, struct xm_value **out)
{
    uint64_t number;
    if (xm_lex_take(&p->lex, '_')) {
        *out = xm_none(p->g);
        return *out ? XM_OK : fail_memory(p);
    }
    XM_TRY(xm_lex_expect(&p->lex, '%'));
    XM_TRY(xm_lex_number(&p->lex, MAX_NUMBER - 1, &number));
    if (number >= p->n_values || !p->values[number])
        return xm_lex_fail(&p->lex, "there is no value %%%u above", (unsigned)number);
    *out = p->values[number];
    return XM_OK;
}

static enum xm_status
parse_operands(struct parser *p, struct line *line)
{
    char c = xm_lex_peek(&p->lex);
    line->n_in = 0;
    if (c != '%' && c != '_')
        return XM_OK;
    do {
        if (line->n_in == MAX_OPERANDS)
            return xm_lex_fail(&p->lex, "a node has more than %d operands", MAX_OPERANDS);
        XM_TRY(parse_operand(p, &p->operands[line->n_in]));
        line->n_in++;
    } while (xm_lex_take(&p->lex, ','));
    return XM_OK;
}

/* ---- data -------------------------------------------------------------------------- */

static enum xm_status
allocate_data(struct parser *p, enum xm_element e, uint64_t n, struct xm_bytes *out)
{
    uint8_t *bytes;
    if (!xm_element_bytes(e, n, &out->n) || out->n > p->data_left)
        return xm_lex_fail(&p->lex, "the text declares more than %d MiB of constants",
                           XM_TEXT_MOST_DATA >> 20);
    p->data_left -= out->n;
    bytes = xm_arena_alloc(&p->g->arena, out->n);
    out->p = bytes;
    return bytes ? XM_OK : fail_memory(p);
}

/* Bits of two elements of 4, or of a number of 8: floats are below 2, none is NaN. */
static uint8_t
small_bits(enum xm_element e, uint32_t random)
{
    if (e == XM_F8E8M0)
        return (uint8_t)(120 + random % 8);
    return (uint8_t)(e == XM_F8E4M3 || e == XM_F8E5M2 ? random & 0xbf : random);
}

/* Small numbers that depend on the blob's number only: floats of an eighth in [-1, 1), or
 * any bits for integers. */
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

static enum xm_status
parse_blob(struct parser *p, enum xm_element e, uint64_t n, uint64_t number,
           struct xm_bytes *out)
{
    XM_TRY(allocate_data(p, e, n, out));
    fill_pattern(e, number, n, *out);
    return XM_OK;
}

/* The bytes that somebody has. */
static enum xm_status
find_constant(struct parser *p, enum xm_element e, uint64_t n, uint64_t number,
              struct xm_bytes *out)
{
    struct xm_data data = {0};
    struct xm_error why = {0};
    uint64_t n_bytes;
    if (!xm_element_bytes(e, n, &n_bytes))
        return xm_lex_fail(&p->lex, "a constant of so many elements has no size");
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

/* Elements in whole bytes that no file has; 0: they are of no fixed size. */
static uint64_t
elements_in(enum xm_element e, uint64_t bytes)
{
    const uint32_t bits = xm_element_bits(e);
    return bits ? bytes / (bits > 8 ? bits / 8 : 1) * (bits < 8 ? 8 / bits : 1) : 0;
}

/* The bytes that a file has; those that none has get a pattern. */
static enum xm_status
place_constant(struct parser *p, enum xm_element e, uint64_t n, uint64_t number,
               struct xm_bytes *out)
{
    struct xm_text_places places;
    uint64_t n_bytes;
    XM_TRY(xm_text_parse_places(&p->lex, p->g, &places));
    *out = places.part[XM_TEXT_DATA];
    if (!out->p)
        return parse_blob(p, e, n, number, out);
    if (!xm_element_bytes(e, n, &n_bytes) || out->n < n_bytes)
        return xm_lex_fail(&p->lex, "constant @%u has %llu bytes in the file, too few",
                           (unsigned)number, (unsigned long long)out->n);
    return XM_OK;
}

static enum xm_status
find_weight(struct parser *p, struct xm_weight *w, uint64_t number)
{
    struct xm_error why = {0};
    if (p->blobs->weight(p->blobs->ctx, (uint32_t)number, w, &why) != XM_OK)
        return xm_lex_pass_on(&p->lex, &why);
    const char *wrong = xm_weight_check(w);
    return wrong ? xm_lex_fail(&p->lex, "weight @%u: %s", (unsigned)number, wrong)
                 : XM_OK;
}

static enum xm_status
parse_element(struct parser *p, enum xm_element e, uint8_t *bytes, uint64_t i)
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
    return *end ? xm_lex_fail(&p->lex, "'%s' is no number", word) : XM_OK;
}

static enum xm_status
parse_elements(struct parser *p, enum xm_element e, uint64_t n, struct xm_bytes *out)
{
    if (!xm_text_is_inline(e))
        return xm_lex_fail(&p->lex, "constants of %s cannot stand in braces",
                           xm_element_text(e));
    XM_TRY(allocate_data(p, e, n, out));
    for (uint64_t i = 0; i < n; i++) {
        if (i > 0)
            XM_TRY(xm_lex_expect(&p->lex, ','));
        XM_TRY(parse_element(p, e, (uint8_t *)out->p, i));
    }
    return xm_lex_expect(&p->lex, '}');
}

/* The number of elements of a declared type. */
static enum xm_status
count_elements(struct parser *p, const struct xm_type *t, uint64_t *out)
{
    return xm_static_elements(&t->shape, out)
               ? XM_OK
               : xm_lex_fail(&p->lex, "the shape of a constant must be constant");
}

static enum xm_status
parse_const(struct parser *p, struct line *line)
{
    enum xm_element e = line->declared.element;
    struct xm_bytes b = {(const uint8_t *)"", 0};
    uint64_t n, number;
    XM_TRY(count_elements(p, &line->declared, &n));
    if (xm_lex_take(&p->lex, '{')) {
        XM_TRY(parse_elements(p, e, n, &b));
    } else {
        XM_TRY(xm_lex_expect(&p->lex, '@'));
        XM_TRY(xm_lex_number(&p->lex, UINT32_MAX, &number));
        if (e != XM_STRING)
            XM_TRY(p->blobs                         ? find_constant(p, e, n, number, &b)
                   : xm_text_places_follow(&p->lex) ? place_constant(p, e, n, number, &b)
                                                    : parse_blob(p, e, n, number, &b));
    }
    line->attr.data = (struct xm_data){b.p, b.n};
    return XM_OK;
}

/* ---- weights ----------------------------------------------------------------------- */

static enum xm_status
parse_weight_attr(struct parser *p, struct xm_weight *w)
{
    char key[XM_LEX_WORD], word[XM_LEX_WORD];
    XM_TRY(xm_lex_word(&p->lex, "an attribute of a weight or @", key));
    XM_TRY(xm_lex_expect(&p->lex, '='));
    if (strcmp(key, "group") == 0)
        return xm_lex_number(&p->lex, INT64_MAX, &w->group);
    if (strcmp(key, "scale") == 0)
        return xm_lex_element(&p->lex, &w->scale_element);
    if (strcmp(key, "zp") == 0)
        return xm_lex_element(&p->lex, &w->zero_point_element);
    if (strcmp(key, "factors") == 0) {
        XM_TRY(xm_lex_number(&p->lex, INT32_MAX, &w->factor.n));
        w->factor.n *= sizeof(float);
        return XM_OK;
    }
    XM_TRY(xm_lex_word(&p->lex, "a value", word));
    if (strcmp(key, "order") == 0 && strcmp(word, "group_major") == 0)
        w->order = XM_SCALE_GROUP_MAJOR;
    else if (strcmp(key, "zp_scalar") == 0 && strcmp(word, "true") == 0)
        w->zero_point_is_scalar = true;
    else
        return xm_lex_fail(&p->lex, "a weight has no attribute %s=%s", key, word);
    return XM_OK;
}

/* Bytes below 64: read as f16 they are numbers, below 2. */
static enum xm_status
fill_blocks(struct parser *p, struct xm_weight *w, uint64_t n, uint64_t number)
{
    const struct xm_weight_format_info *f = xm_weight_info(w);
    if (w->group || w->cols % f->block_cols != 0)
        return xm_lex_fail(&p->lex, "rows of %llu are no whole blocks of %s",
                           (unsigned long long)w->cols, f->text);
    XM_TRY(parse_blob(p, XM_U8, n / f->block_cols * f->block_bytes, number, &w->data));
    for (uint64_t i = 0; i < w->data.n; i++)
        ((uint8_t *)w->data.p)[i] &= 63;
    return XM_OK;
}

static enum xm_status
fill_scales(struct parser *p, struct xm_weight *w, uint64_t n, uint64_t number)
{
    if (!xm_text_is_inline(w->scale_element))
        return parse_blob(p, w->scale_element, n, number, &w->scale);
    XM_TRY(allocate_data(p, w->scale_element, n, &w->scale));
    for (uint64_t i = 0; i < n; i++)
        xm_store_float(w->scale_element, (uint8_t *)w->scale.p, i,
                       (float)(1 + (i + number) % 7) / 64.0f);
    return XM_OK;
}

/* Codebook and factors, whose numbers the text has said. */
static enum xm_status
fill_extras(struct parser *p, struct xm_weight *w, uint64_t number)
{
    if (w->codebook.n)
        XM_TRY(parse_blob(p, XM_F32, w->codebook.n / sizeof(float), number + 2,
                          &w->codebook));
    return w->factor.n ? parse_blob(p, XM_F32, w->factor.n / sizeof(float), number + 3,
                                    &w->factor)
                       : XM_OK;
}

/* Bytes of data, scales and zero points by the weight's number. */
static enum xm_status
fill_weight(struct parser *p, struct xm_weight *w, uint64_t n, uint64_t number)
{
    uint64_t n_scales = w->group ? n / w->group : 0;
    XM_TRY(fill_extras(p, w, number));
    if (xm_weight_is_blocks(w))
        return fill_blocks(p, w, n, number);
    XM_TRY(parse_blob(p, w->element, n, number, &w->data));
    if (w->group == 0)
        return XM_OK;
    if (w->cols % w->group != 0)
        return xm_lex_fail(&p->lex, "rows of %llu are no multiple of the group %llu",
                           (unsigned long long)w->cols, (unsigned long long)w->group);
    XM_TRY(fill_scales(p, w, n_scales, number));
    if (w->zero_point_element == XM_DYNAMIC)
        return XM_OK;
    return parse_blob(p, w->zero_point_element, w->zero_point_is_scalar ? 1 : n_scales,
                      number + 1, &w->zero_point);
}

/* A part with its place: its bytes, or as many of a pattern. */
static enum xm_status
place_part(struct parser *p, const struct xm_bytes *place, enum xm_element e,
           uint64_t number, struct xm_bytes *out)
{
    *out = *place;
    if (place->n == 0)
        return xm_lex_fail(&p->lex, "weight @%u has no place for all of its parts",
                           (unsigned)number);
    return place->p ? XM_OK : parse_blob(p, e, elements_in(e, place->n), number, out);
}

static enum xm_status
place_weight(struct parser *p, struct xm_weight *w, uint64_t number)
{
    struct xm_text_places at;
    const bool is_blocks = xm_weight_is_blocks(w);
    XM_TRY(xm_text_parse_places(&p->lex, p->g, &at));
    w->view = at.view;
    XM_TRY(place_part(p, &at.part[XM_TEXT_DATA], is_blocks ? XM_U8 : w->element, number,
                      &w->data));
    for (uint64_t i = 0; is_blocks && !at.part[XM_TEXT_DATA].p && i < w->data.n; i++)
        ((uint8_t *)w->data.p)[i] &= 63; /* as fill_blocks() does */
    if (w->group && at.part[XM_TEXT_SCALE].n && !at.part[XM_TEXT_SCALE].p)
        XM_TRY(fill_scales(p, w, elements_in(w->scale_element, at.part[XM_TEXT_SCALE].n),
                           number));
    else if (w->group)
        XM_TRY(
            place_part(p, &at.part[XM_TEXT_SCALE], w->scale_element, number, &w->scale));
    if (w->group && w->zero_point_element != XM_DYNAMIC)
        XM_TRY(place_part(p, &at.part[XM_TEXT_ZERO_POINT], w->zero_point_element,
                          number + 1, &w->zero_point));
    if (w->codebook.n)
        XM_TRY(
            place_part(p, &at.part[XM_TEXT_CODEBOOK], XM_F32, number + 2, &w->codebook));
    if (w->factor.n)
        XM_TRY(place_part(p, &at.part[XM_TEXT_FACTOR], XM_F32, number + 3, &w->factor));
    const char *wrong = xm_weight_check(w);
    return wrong ? xm_lex_fail(&p->lex, "weight @%u: %s", (unsigned)number, wrong)
                 : XM_OK;
}

/* A block format, or an element type. */
static enum xm_status
parse_weight_format(struct parser *p, struct xm_weight *w)
{
    char word[XM_LEX_WORD];
    XM_TRY(xm_lex_word(&p->lex, "an element type or a format of weights", word));
    for (int f = 0; f < XM_WEIGHT_FORMATS; f++)
        if (f != XM_WEIGHT_ELEMENTS && strcmp(word, xm_weight_formats[f].text) == 0) {
            w->format = (enum xm_weight_format)f;
            return XM_OK;
        }
    if (strcmp(word, "codebook") == 0) {
        w->element = XM_U4;
        w->codebook.n = XM_CODEBOOK_NUMBERS * sizeof(float);
        return XM_OK;
    }
    w->element = xm_element_parse(word);
    if (w->element == XM_ELEMENT_COUNT)
        return xm_lex_fail(&p->lex, "'%s' is no element type and no format of weights",
                           word);
    return XM_OK;
}

static enum xm_status
parse_weight(struct parser *p, struct line *line)
{
    const struct xm_shape *s = &line->declared.shape;
    struct xm_weight w = {.rank = s->rank, .experts = 1, .rows = 1, .cols = 1};
    uint64_t n, number;
    XM_TRY(count_elements(p, &line->declared, &n));
    if (s->rank < 1 || s->rank > 3)
        return xm_lex_fail(&p->lex, "a weight has rank 1 to 3");
    w.cols = (uint64_t)s->dim[s->rank - 1].n;
    if (s->rank > 1)
        w.rows = (uint64_t)s->dim[s->rank - 2].n;
    if (s->rank > 2)
        w.experts = (uint64_t)s->dim[0].n;
    XM_TRY(parse_weight_format(p, &w));
    while (!xm_lex_take(&p->lex, '@'))
        XM_TRY(parse_weight_attr(p, &w));
    XM_TRY(xm_lex_number(&p->lex, UINT32_MAX - 1, &number));
    XM_TRY(p->blobs                         ? find_weight(p, &w, number)
           : xm_text_places_follow(&p->lex) ? place_weight(p, &w, number)
                                            : fill_weight(p, &w, n, number));
    line->attr.weight = w;
    return XM_OK;
}

static enum xm_status
parse_shape_value(struct parser *p, struct line *line)
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
        return fail_memory(p);
    memcpy(copy, e, n * sizeof(*copy));
    line->attr.shape_value = (struct xm_content){n, copy};
    return XM_OK;
}

static enum xm_status
parse_data(struct parser *p, struct line *line)
{
    switch (line->op) {
    case XM_OP_CONST:
        return parse_const(p, line);
    case XM_OP_WEIGHT:
        return parse_weight(p, line);
    case XM_OP_SHAPE_VALUE:
        return parse_shape_value(p, line);
    default:
        return XM_OK;
    }
}

/* ---- attributes and names ---------------------------------------------------------- */

static enum xm_status
parse_attr_value(struct parser *p, struct line *line, const struct xm_attr_info *info)
{
    char word[XM_LEX_WORD];
    const char *value = word;
    struct xm_error e = {0};
    if (info->kind == XM_ATTR_STRING)
        XM_TRY(xm_lex_string(&p->lex, &p->g->arena, &value));
    else
        XM_TRY(xm_lex_word(&p->lex, "a value", word));
    if (xm_attr_set(p->g, &line->attr, info, value, &e) != XM_OK)
        return xm_lex_pass_on(&p->lex, &e);
    return XM_OK;
}

static enum xm_status
parse_attr(struct parser *p, struct line *line, const struct xm_attr_info *info, size_t n,
           const char *key)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(info[i].text, key) != 0)
            continue;
        if (line->attrs_seen & (UINT64_C(1) << i))
            return xm_lex_fail(&p->lex, "the attribute %s is given twice", key);
        line->attrs_seen |= UINT64_C(1) << i;
        return parse_attr_value(p, line, &info[i]);
    }
    return xm_lex_fail(&p->lex, "%s has no attribute '%s'", xm_op_info(line->op)->text,
                       key);
}

/* Attributes up to the end, ':' or "names=". *names says that those follow. */
static enum xm_status
parse_attrs(struct parser *p, struct line *line, bool *names)
{
    size_t n;
    const struct xm_attr_info *info = xm_op_attrs(line->op, &n);
    char key[XM_LEX_WORD];
    *names = false;
    while (strchr(":#\n", xm_lex_peek(&p->lex)) == NULL) { /* '\0' ends it, too */
        XM_TRY(xm_lex_word(&p->lex, "an attribute", key));
        XM_TRY(xm_lex_expect(&p->lex, '='));
        *names = strcmp(key, "names") == 0;
        if (*names)
            break;
        XM_TRY(parse_attr(p, line, info, n, key));
    }
    for (size_t i = 0; i < n; i++)
        if (!info[i].default_text && !(line->attrs_seen & (UINT64_C(1) << i)))
            return xm_lex_fail(&p->lex, "%s needs the attribute %s",
                               xm_op_info(line->op)->text, info[i].text);
    return XM_OK;
}

/* {"a","b"} behind "names=". */
static enum xm_status
parse_names(struct parser *p, struct xm_value *v)
{
    const char *names[MAX_NAMES], **copy;
    uint32_t n = 0;
    XM_TRY(xm_lex_expect(&p->lex, '{'));
    do {
        if (n == MAX_NAMES)
            return xm_lex_fail(&p->lex, "a value has more than %d names", MAX_NAMES);
        XM_TRY(xm_lex_string(&p->lex, &p->g->arena, &names[n++]));
    } while (xm_lex_take(&p->lex, ','));
    XM_TRY(xm_lex_expect(&p->lex, '}'));
    copy = xm_arena_alloc(&p->g->arena, n * sizeof(*copy));
    if (!copy)
        return fail_memory(p);
    memcpy(copy, names, n * sizeof(*copy));
    v->names = copy;
    v->n_names = n;
    return XM_OK;
}

/* ---- nodes ------------------------------------------------------------------------- */

static enum xm_status
fail_type(struct parser *p, const struct xm_type *said, const struct xm_type *found)
{
    struct xm_strbuf a = {0}, b = {0};
    xm_type_print(said, &a);
    xm_type_print(found, &b);
    xm_lex_fail(&p->lex, "the result is %s here, but its operands give %s",
                xm_strbuf_text(&a), xm_strbuf_text(&b));
    xm_strbuf_free(&a);
    xm_strbuf_free(&b);
    return XM_INVALID;
}

/* "as f16" */
static enum xm_status
parse_stored(struct parser *p, struct xm_value *v)
{
    char word[XM_LEX_WORD];
    XM_TRY(xm_lex_word(&p->lex, "as", word));
    XM_TRY(xm_lex_element(&p->lex, &v->stored));
    if (strcmp(word, "as") != 0 || (v->stored != XM_F16 && v->stored != XM_F32) ||
        !xm_element_is_float(v->type.element))
        return xm_lex_fail(&p->lex, "only floats are stored 'as' f16 or f32");
    return XM_OK;
}

/* ": f32[4] as f16, i64[4] names={"ids"}": the text's own symbols win over inferred ones. Text
 * written by hand may leave the types out. */
static enum xm_status
parse_types(struct parser *p, struct xm_node *n)
{
    char key[XM_LEX_WORD];
    if (!xm_lex_take(&p->lex, ':'))
        return XM_OK;
    for (uint32_t i = 0; i < n->n_out; i++) {
        struct xm_type t;
        if (i > 0)
            XM_TRY(xm_lex_expect(&p->lex, ','));
        XM_TRY(xm_lex_type(&p->lex, &p->g->dims, &t));
        if (!xm_type_agrees(&t, &n->out[i].type))
            return fail_type(p, &t, &n->out[i].type);
        n->out[i].type = t;
        if (xm_lex_peek(&p->lex) == 'a')
            XM_TRY(parse_stored(p, &n->out[i]));
        if (xm_lex_peek(&p->lex) != 'n')
            continue;
        XM_TRY(xm_lex_word(&p->lex, "names", key));
        XM_TRY(xm_lex_expect(&p->lex, '='));
        XM_TRY(parse_names(p, &n->out[i]));
    }
    return XM_OK;
}

static enum xm_status
parse_friendly_name(struct parser *p, struct xm_node *n)
{
    if (xm_lex_take(&p->lex, '#'))
        XM_TRY(xm_lex_string(&p->lex, &p->g->arena, &n->name));
    char c = xm_lex_peek(&p->lex);
    if (c != '\n' && c != '\0')
        return xm_lex_fail(&p->lex, "expected the end of the line, found '%c'", c);
    return XM_OK;
}

/* The count of results costs memory: it must be written out, not only declared. */
static enum xm_status
check_result_count(struct parser *p, const struct line *line)
{
    uint64_t n = (uint64_t)xm_op_info(line->op)->n_out;
    if (line->op == XM_OP_RESULT)
        n = 0;
    if (line->op == XM_OP_LINEAR)
        n = line->attr.linear.glu      ? 1
            : line->n_in > XM_LINEAR_W ? (line->n_in - XM_LINEAR_W) / XM_LINEAR_SEGMENT
                                       : 0;
    if (line->op == XM_OP_ROW_CHAIN) {
        n = xm_row_chain_results(line->attr.row_chain.steps);
        if (n == 0) /* no chain: building says why */
            return XM_OK;
    }
    if (line->op == XM_OP_SPLIT)
        n = (uint64_t)line->attr.split.n;
    if (line->op == XM_OP_VARIADIC_SPLIT) {
        const struct xm_shape *s = line->n_in == 3 ? &p->operands[2]->type.shape : NULL;
        n = s && s->rank == 1 && xm_dim_is_const(s->dim[0]) ? (uint64_t)s->dim[0].n : 0;
    }
    if (line->n_results != n)
        return xm_lex_fail(&p->lex, "%s has %llu results here, not %llu",
                           xm_op_info(line->op)->text, (unsigned long long)n,
                           (unsigned long long)line->n_results);
    return XM_OK;
}

static enum xm_status
build_line(struct parser *p, const struct line *line, struct xm_node **out)
{
    bool declared = xm_text_has_declared_type(line->op);
    struct xm_node *n =
        xm_node_build_declared(&p->b, line->op, &line->attr, p->operands, line->n_in,
                               declared ? &line->declared : NULL);
    if (!n)
        return xm_lex_pass_on(&p->lex, &p->g->err);
    *out = n;
    if (line->n_results == 0)
        return XM_OK;
    n->id = (uint32_t)line->number;
    for (uint32_t i = 0; i < n->n_out; i++)
        XM_TRY(remember(p, line->number + i, &n->out[i]));
    return XM_OK;
}

static enum xm_status
parse_op(struct parser *p, struct line *line)
{
    char word[XM_LEX_WORD];
    XM_TRY(xm_lex_word(&p->lex, "an operation", word));
    line->op = xm_op_by_text(word);
    if (line->op == XM_OP_COUNT || line->op == XM_OP_NONE)
        return xm_lex_fail(&p->lex, "there is no operation '%s'", word);
    if (xm_attr_defaults(p->g, line->op, &line->attr) != XM_OK)
        return fail_memory(p);
    return XM_OK;
}

static enum xm_status
parse_node(struct parser *p)
{
    struct line line = {0};
    struct xm_node *n = NULL;
    bool names;
    XM_TRY(parse_results(p, &line));
    XM_TRY(parse_op(p, &line));
    if (xm_text_has_declared_type(line.op))
        XM_TRY(xm_lex_type(&p->lex, &p->g->dims, &line.declared));
    XM_TRY(parse_operands(p, &line));
    XM_TRY(parse_data(p, &line));
    XM_TRY(parse_attrs(p, &line, &names));
    XM_TRY(check_result_count(p, &line));
    XM_TRY(build_line(p, &line, &n));
    if (names)
        XM_TRY(parse_names(p, &n->out[0]));
    if (line.n_results > 0 && !xm_text_has_declared_type(line.op))
        XM_TRY(parse_types(p, n));
    return parse_friendly_name(p, n);
}

/* ---- the whole text ---------------------------------------------------------------- */

static bool
take_word(struct xm_lexer *l, const char *word)
{
    size_t n = strlen(word);
    xm_lex_peek(l);
    if (strncmp(l->at, word, n) != 0 || l->at[n] != ' ')
        return false;
    l->at += n;
    return true;
}

static enum xm_status
parse_property(struct parser *p)
{
    const char *key, *value;
    XM_TRY(xm_lex_string(&p->lex, &p->g->arena, &key));
    XM_TRY(xm_lex_expect(&p->lex, '='));
    XM_TRY(xm_lex_string(&p->lex, &p->g->arena, &value));
    if (xm_graph_add_property(p->g, key, value) != XM_OK)
        return xm_lex_pass_on(&p->lex, &p->g->err);
    return XM_OK;
}

static enum xm_status
parse_file(struct parser *p)
{
    return p->opens_files
               ? xm_text_parse_file(&p->lex, p->g)
               : xm_lex_fail(&p->lex, "this text refers to a file, and must not");
}

/* Nodes without a written number (results) come behind all that have one. */
static void
number_results(struct parser *p, uint64_t highest)
{
    uint32_t next = (uint32_t)highest;
    xm_for_each_node(n, p->g)
    {
        if (n->op == XM_OP_RESULT)
            n->id = next++;
    }
    p->g->next_id = next;
}

static enum xm_status
parse_text(struct parser *p)
{
    struct xm_lexer *l = &p->lex;
    uint64_t highest = 0;
    char c = xm_lex_peek(l);
    if ((c == '\n' || c == '#') && !xm_lex_next_line(l))
        return xm_lex_fail(l, "the text holds no graph");
    if (!take_word(l, "graph"))
        return xm_lex_fail(l, "expected graph \"name\"");
    XM_TRY(xm_lex_string(l, &p->g->arena, &p->g->name));
    while (xm_lex_next_line(l))
        XM_TRY(take_word(l, "property") ? parse_property(p)
               : take_word(l, "file")   ? parse_file(p)
                                        : parse_node(p));
    for (uint64_t i = 0; i < p->n_values; i++)
        if (p->values[i])
            highest = i + 1;
    number_results(p, highest);
    return XM_OK;
}

static enum xm_status
parse_whole(struct parser *p, const char *text, struct xm_graph **out)
{
    enum xm_status status;
    *out = NULL;
    p->g = xm_graph_create("");
    p->operands = xm_calloc(MAX_OPERANDS, sizeof(struct xm_value *));
    if (p->g && p->operands) {
        p->b = xm_builder_at_end(p->g);
        for (const char *s = text; (s = strchr(s, '?')) != NULL; s++)
            xm_dim_reserve_fresh(&p->g->dims, s); /* symbols made must not meet them */
        status = parse_text(p);
    } else {
        status = fail_memory(p);
    }
    xm_free(p->values);
    xm_free(p->operands);
    if (status == XM_OK)
        *out = p->g;
    else
        xm_graph_destroy(p->g);
    return status;
}

enum xm_status
xm_graph_parse(const char *text, struct xm_graph **out, struct xm_error *err)
{
    return xm_graph_parse_with(text, NULL, out, err);
}

enum xm_status
xm_graph_parse_with(const char *text, const struct xm_text_blobs *blobs,
                    struct xm_graph **out, struct xm_error *err)
{
    struct parser p = {
        .lex = {text, text, 1, err}, .data_left = XM_TEXT_MOST_DATA, .blobs = blobs};
    return parse_whole(&p, text, out);
}

enum xm_status
xm_graph_parse_dump(const char *text, struct xm_graph **out, struct xm_error *err)
{
    struct parser p = {
        .lex = {text, text, 1, err}, .data_left = XM_TEXT_MOST_DATA, .opens_files = true};
    return parse_whole(&p, text, out);
}
