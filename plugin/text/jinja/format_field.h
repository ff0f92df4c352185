/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to format*.c: the description of a field, which "%+5d" and "{:+5d}" have in common once
 * they are parsed.
 *
 *     format_field.c    writes one value in the form that a struct xm_jinja_field describes
 *     format_percent.c  parses "%..." and picks the value
 *     format_braces.c   parses "{...}" and picks the value
 */
#ifndef XM_PLUGIN_TEXT_JINJA_FORMAT_FIELD_H
#define XM_PLUGIN_TEXT_JINJA_FORMAT_FIELD_H

#include "plugin/text/jinja/format.h"

/* Bounds of a field, in characters and in digits; a template that asks for more fails. */
enum { XM_JINJA_MAX_WIDTH = 100000, XM_JINJA_MAX_PRECISION = 100 };

struct xm_jinja_field {
    struct xm_slice fill;     /* one character, repeated up to the width */
    char align;               /* '<' '>' '^' '=', 0: by the kind of value */
    char sign;                /* '+' ' ' '-' */
    bool has_sign, has_zeros; /* the format has a sign; it has a 0 before the width */
    bool alternate;           /* '#': integers in base 2, 8, 16 begin with 0b, 0o, 0x */
    /* separator between groups of three digits: ',' '_'; 0: none */
    char grouping;
    int64_t width, precision; /* width in characters; precision -1: not given */
    char type;                /* conversion letter; 0: depends on the kind of value */
};

/* Appends `v`, formatted as the field says. Fails if the conversion type does not suit the
 * value. */
enum xm_status xm_jinja_write_field(struct xm_jinja_run *r,
                                    const struct xm_jinja_field *f,
                                    struct xm_jinja_value v, struct xm_jinja_buffer *b);
/* Fails with an error message such as "format code 'd' for a string". */
enum xm_status xm_jinja_fail_format_type(struct xm_jinja_run *r, char type,
                                         struct xm_jinja_value v);
/* Fails if width or precision is out of bounds. */
enum xm_status xm_jinja_check_field(struct xm_jinja_run *r,
                                    const struct xm_jinja_field *f);

/* Reads decimal digits from byte *at on and moves *at behind them. False: there are none, and *out
 * is 0. If the number is larger than any field may be, *out is some number above
 * XM_JINJA_MAX_WIDTH. */
bool xm_jinja_read_count(struct xm_slice s, size_t *at, int64_t *out);
/* Sets *out to the string repr(v). */
enum xm_status xm_jinja_repr_text(struct xm_jinja_run *r, struct xm_jinja_value v,
                                  struct xm_jinja_value *out);

/* Returns byte `at`; NUL: behind the end. */
static inline char
xm_jinja_peek(struct xm_slice s, size_t at)
{
    return at < s.n ? s.text[at] : '\0';
}

#endif
