/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/byte_level.h"

#include "runtime/util/utf8.h"

enum { FIRST_STAND_IN = 0x100, N_STAND_INS = 68 };

/* Returns the character that stands for byte b. Bytes 00..20, 7F..A0 and AD (a soft hyphen) are not
 * printable and have stand-ins from U+0100 on. */
static int32_t
char_of_byte(uint8_t b)
{
    if (b <= 0x20)
        return FIRST_STAND_IN + b;
    if (b >= 0x7f && b <= 0xa0)
        return FIRST_STAND_IN + 0x21 + (b - 0x7f);
    return b == 0xad ? FIRST_STAND_IN + N_STAND_INS - 1 : b;
}

/* Returns the byte that the character stands for; -1: none. */
static int
byte_of_char(int32_t code)
{
    if (code < FIRST_STAND_IN)
        return code >= 0 && char_of_byte((uint8_t)code) == code ? code : -1;
    int32_t i = code - FIRST_STAND_IN;
    if (i < 0x21)
        return i;
    if (i < N_STAND_INS - 1)
        return i - 0x21 + 0x7f;
    return i == N_STAND_INS - 1 ? 0xad : -1;
}

void
xm_byte_level_encode(struct xm_slice bytes, struct xm_strbuf *out)
{
    for (size_t i = 0; i < bytes.n; i++)
        xm_utf8_add(out, char_of_byte((uint8_t)bytes.text[i]));
}

void
xm_byte_level_decode(struct xm_slice text, struct xm_strbuf *out)
{
    int32_t code;
    for (size_t i = 0; i < text.n;) {
        i += xm_utf8_next(xm_slice_of(text.text + i, text.n - i), &code);
        if (byte_of_char(code) < 0) {
            xm_strbuf_add_n(out, text.text, text.n);
            return;
        }
    }
    for (size_t i = 0; i < text.n;) {
        i += xm_utf8_next(xm_slice_of(text.text + i, text.n - i), &code);
        char byte = (char)byte_of_char(code);
        xm_strbuf_add_n(out, &byte, 1);
    }
}
