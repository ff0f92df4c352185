/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of graph text: their format, and their bytes from the caller, a file or a pattern.
 */
#include <string.h>

#include "transformations/graph/parse.h"
#include "transformations/graph/text_files.h"
#include "transformations/graph/text_format.h"

static enum xm_status
find_weight(struct xm_parser *p, struct xm_weight *w, uint64_t number)
{
    struct xm_error why = {0};
    if (p->blobs->weight(p->blobs->ctx, (uint32_t)number, w, &why) != XM_OK)
        return xm_lex_pass_on(&p->lex, &why);
    const char *wrong = xm_weight_check(w);
    return wrong ? xm_lex_fail(&p->lex, "weight @%u: %s", (unsigned)number, wrong)
                 : XM_OK;
}

static enum xm_status
parse_weight_attr(struct xm_parser *p, struct xm_weight *w)
{
    char key[XM_LEX_WORD], word[XM_LEX_WORD];
    XM_TRY(xm_lex_word(&p->lex, "an attribute of a weight, or @", key));
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
        return xm_lex_fail(&p->lex, "a weight has no attribute '%s' with the value '%s'",
                           key, word);
    return XM_OK;
}

/* Fills blocks with bytes below 64, so that an f16 in them is a number below 2. */
static enum xm_status
fill_blocks(struct xm_parser *p, struct xm_weight *w, uint64_t n, uint64_t number)
{
    const struct xm_weight_format_info *f = xm_weight_info(w);
    if (w->group || w->cols % f->block_cols != 0)
        return xm_lex_fail(&p->lex,
                           "rows of %llu columns are not a whole number of %s blocks",
                           (unsigned long long)w->cols, f->text);
    XM_TRY(
        xm_parse_pattern(p, XM_U8, n / f->block_cols * f->block_bytes, number, &w->data));
    for (uint64_t i = 0; i < w->data.n; i++)
        ((uint8_t *)w->data.p)[i] &= 63;
    return XM_OK;
}

static enum xm_status
fill_scales(struct xm_parser *p, struct xm_weight *w, uint64_t n, uint64_t number)
{
    if (!xm_text_is_inline(w->scale_element))
        return xm_parse_pattern(p, w->scale_element, n, number, &w->scale);
    XM_TRY(xm_parse_allocate(p, w->scale_element, n, &w->scale));
    for (uint64_t i = 0; i < n; i++)
        xm_store_float(w->scale_element, (uint8_t *)w->scale.p, i,
                       (float)(1 + (i + number) % 7) / 64.0f);
    return XM_OK;
}

/* Fills codebook and factors, whose lengths are set, with patterns. */
static enum xm_status
fill_extras(struct xm_parser *p, struct xm_weight *w, uint64_t number)
{
    if (w->codebook.n)
        XM_TRY(xm_parse_pattern(p, XM_F32, w->codebook.n / sizeof(float), number + 2,
                                &w->codebook));
    return w->factor.n ? xm_parse_pattern(p, XM_F32, w->factor.n / sizeof(float),
                                          number + 3, &w->factor)
                       : XM_OK;
}

/* Fills data, scales and zero points with patterns that depend on the weight's number. */
static enum xm_status
fill_weight(struct xm_parser *p, struct xm_weight *w, uint64_t n, uint64_t number)
{
    uint64_t n_scales = w->group ? n / w->group : 0;
    XM_TRY(fill_extras(p, w, number));
    if (xm_weight_is_blocks(w))
        return fill_blocks(p, w, n, number);
    XM_TRY(xm_parse_pattern(p, w->element, n, number, &w->data));
    if (w->group == 0)
        return XM_OK;
    if (w->cols % w->group != 0)
        return xm_lex_fail(
            &p->lex, "rows of %llu columns are not a multiple of the group size %llu",
            (unsigned long long)w->cols, (unsigned long long)w->group);
    XM_TRY(fill_scales(p, w, n_scales, number));
    if (w->zero_point_element == XM_DYNAMIC)
        return XM_OK;
    return xm_parse_pattern(p, w->zero_point_element,
                            w->zero_point_is_scalar ? 1 : n_scales, number + 1,
                            &w->zero_point);
}

/* The number of elements in `bytes` bytes; 0: the element type has no fixed size. */
static uint64_t
elements_in(enum xm_element e, uint64_t bytes)
{
    const uint32_t bits = xm_element_bits(e);
    return bits ? bytes / (bits > 8 ? bits / 8 : 1) * (bits < 8 ? 8 / bits : 1) : 0;
}

/* Takes the bytes of an array from its place in a file, or fills as many with a pattern. */
static enum xm_status
place_part(struct xm_parser *p, const struct xm_bytes *place, enum xm_element e,
           uint64_t number, struct xm_bytes *out)
{
    *out = *place;
    if (place->n == 0)
        return xm_lex_fail(
            &p->lex, "weight @%u does not state where all of its data lies in the file",
            (unsigned)number);
    return place->p ? XM_OK
                    : xm_parse_pattern(p, e, elements_in(e, place->n), number, out);
}

static enum xm_status
place_weight(struct xm_parser *p, struct xm_weight *w, uint64_t number)
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

/* Reads a block format, "codebook", or an element type. */
static enum xm_status
parse_weight_format(struct xm_parser *p, struct xm_weight *w)
{
    char word[XM_LEX_WORD];
    XM_TRY(xm_lex_word(&p->lex, "an element type or a weight format", word));
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
        return xm_lex_fail(&p->lex, "'%s' is neither an element type nor a weight format",
                           word);
    return XM_OK;
}

enum xm_status
xm_parse_weight(struct xm_parser *p, struct xm_parsed_line *line)
{
    const struct xm_shape *s = &line->declared.shape;
    struct xm_weight w = {.rank = s->rank, .experts = 1, .rows = 1, .cols = 1};
    uint64_t n, number;
    XM_TRY(xm_parse_count_elements(p, &line->declared, &n));
    if (s->rank < 1 || s->rank > 3)
        return xm_lex_fail(&p->lex, "a weight must have rank 1 to 3");
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
