/* SPDX-License-Identifier: Apache-2.0
 *
 * A map from tokenizer.json works as in Hugging Face's library: the text to look up is replaced as
 * a whole by the replacement of the shortest key with which it begins. A map from a GGUF file works
 * as in SentencePiece: the longest key with which the remaining text begins is replaced.
 */
#include "plugin/text/charsmap.h"

#include <utf8proc.h>

#include "runtime/util/utf8.h"

enum { MAX_CLUSTER = 5 }; /* bytes of a grapheme cluster that is looked up as a whole */

struct xm_charsmap {
    uint8_t *blob;    /* owned */
    size_t n_units;   /* units of the trie, behind the 4 bytes of its size */
    const char *text; /* replacements, in `blob`; we append a NUL */
    size_t text_bytes;
    bool by_prefix; /* replace the longest matching key, not grapheme clusters */
};

/* ---- base64 ------------------------------------------------------------------------ */

static int
base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes `s` to *n bytes, at most 3 for 4 digits. False: a character is no base64 digit. */
static bool
decode_base64(struct xm_slice s, uint8_t *out, size_t *n)
{
    uint32_t bits = 0, n_bits = 0;
    *n = 0;
    while (s.n > 0 && s.text[s.n - 1] == '=')
        s.n--;
    for (size_t i = 0; i < s.n; i++) {
        int digit = base64_digit(s.text[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        n_bits += 6;
        if (n_bits < 8)
            continue;
        n_bits -= 8;
        out[(*n)++] = (uint8_t)(bits >> n_bits);
        bits &= (1u << n_bits) - 1;
    }
    return true;
}

/* ---- loading ----------------------------------------------------------------------- */

static uint32_t
load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

/* Finds trie and replacements in map->blob, which has n bytes and room for a NUL. */
static enum xm_status
find_parts(struct xm_charsmap *map, size_t n, struct xm_error *err)
{
    map->blob[n] = 0;
    const size_t trie_bytes = n >= 4 ? load_u32(map->blob) : 0;
    if (n < 4 || trie_bytes % 4 != 0 || trie_bytes == 0 || trie_bytes > n - 4)
        return xm_fail(err, XM_INVALID,
                       "'precompiled_charsmap' of %zu bytes has a trie of %zu", n,
                       trie_bytes);
    map->n_units = trie_bytes / 4;
    map->text = (const char *)map->blob + 4 + trie_bytes;
    map->text_bytes = n - 4 - trie_bytes;
    return XM_OK;
}

static enum xm_status
create(size_t most_bytes, struct xm_charsmap **out, struct xm_error *err)
{
    struct xm_charsmap *map = xm_calloc(1, sizeof(*map));
    *out = map;
    if (map)
        map->blob = xm_malloc(most_bytes + 1);
    if (map && map->blob)
        return XM_OK;
    xm_charsmap_free(map);
    *out = NULL;
    return xm_no_memory(err, "%zu bytes", most_bytes);
}

static enum xm_status
finish(enum xm_status s, struct xm_charsmap **map)
{
    if (s != XM_OK) {
        xm_charsmap_free(*map);
        *map = NULL;
    }
    return s;
}

enum xm_status
xm_charsmap_create(struct xm_slice base64, struct xm_charsmap **out, struct xm_error *err)
{
    size_t n = 0;
    XM_TRY(create(base64.n / 4 * 3 + 3, out, err));
    enum xm_status s =
        decode_base64(base64, (*out)->blob, &n)
            ? find_parts(*out, n, err)
            : xm_fail(err, XM_INVALID, "'precompiled_charsmap' is not base64");
    return finish(s, out);
}

enum xm_status
xm_charsmap_create_of(const uint8_t *bytes, size_t n, struct xm_charsmap **out,
                      struct xm_error *err)
{
    XM_TRY(create(n, out, err));
    if (n)
        memcpy((*out)->blob, bytes, n);
    (*out)->by_prefix = true;
    return finish(find_parts(*out, n, err), out);
}

void
xm_charsmap_free(struct xm_charsmap *map)
{
    if (!map)
        return;
    xm_free(map->blob);
    xm_free(map);
}

/* ---- looking up -------------------------------------------------------------------- */

/* Bits of a unit: 0-7 and 31 are its label; bit 8: it has a leaf; bit 9: the offset is multiplied
 * by 256; 10-30 are the offset. Bits 0-30 of a leaf: where its replacement begins. */
static uint32_t
offset_of(uint32_t unit)
{
    return unit >> 10 << ((unit & 1u << 9) >> 6);
}

/* Finds a key with which `s` begins: the shortest or, with by_prefix, the longest. *n: bytes of the
 * key. False: there is none. */
static bool
find_replacement(const struct xm_charsmap *map, struct xm_slice s,
                 struct xm_slice *replacement, size_t *n)
{
    const uint8_t *units = map->blob + 4;
    uint32_t unit = load_u32(units), at = offset_of(unit);
    bool is_found = false;
    for (size_t i = 0; i < s.n && s.text[i] && !(is_found && !map->by_prefix); i++) {
        at ^= (uint8_t)s.text[i];
        if (at >= map->n_units)
            break;
        unit = load_u32(units + 4 * (size_t)at);
        if ((unit & (1u << 31 | 0xff)) != (uint8_t)s.text[i])
            break;
        at ^= offset_of(unit);
        if (!(unit & 1u << 8))
            continue;
        size_t start = at < map->n_units ? load_u32(units + 4 * (size_t)at) & INT32_MAX
                                         : map->text_bytes;
        if (start > map->text_bytes)
            break;
        *replacement = xm_slice_of(map->text + start, strlen(map->text + start));
        *n = i + 1;
        is_found = true;
    }
    return is_found;
}

/* Returns the bytes of the first grapheme cluster of `s` (s.n > 0). */
static size_t
cluster_bytes(struct xm_slice s)
{
    int32_t before, code, state = 0;
    size_t n = xm_utf8_next(s, &before);
    while (n < s.n) {
        size_t more = xm_utf8_next(xm_slice_of(s.text + n, s.n - n), &code);
        if (utf8proc_grapheme_break_stateful(before, code, &state))
            break;
        before = code;
        n += more;
    }
    return n;
}

static void
run_by_prefix(const struct xm_charsmap *map, struct xm_slice text, struct xm_strbuf *out)
{
    int32_t code;
    for (size_t i = 0, n; i < text.n; i += n) {
        const struct xm_slice rest = {text.text + i, text.n - i};
        struct xm_slice to;
        if (!find_replacement(map, rest, &to, &n)) {
            n = xm_utf8_next(rest, &code);
            to = xm_slice_of(rest.text, n);
        }
        xm_strbuf_add_n(out, to.text, to.n);
    }
}

static void
run_by_cluster(const struct xm_charsmap *map, struct xm_slice text, struct xm_strbuf *out)
{
    struct xm_slice to;
    size_t used;
    int32_t code;
    for (size_t i = 0, end; i < text.n; i = end) {
        end = i + cluster_bytes(xm_slice_of(text.text + i, text.n - i));
        if (end - i <= MAX_CLUSTER &&
            find_replacement(map, xm_slice_of(text.text + i, end - i), &to, &used)) {
            xm_strbuf_add_n(out, to.text, to.n);
            continue;
        }
        for (size_t n; i < end; i += n) {
            struct xm_slice c = xm_slice_of(text.text + i, end - i);
            n = c.n = xm_utf8_next(c, &code);
            if (!find_replacement(map, c, &to, &used))
                to = c;
            xm_strbuf_add_n(out, to.text, to.n);
        }
    }
}

void
xm_charsmap_run(const struct xm_charsmap *map, struct xm_slice text,
                struct xm_strbuf *out)
{
    if (map->by_prefix)
        run_by_prefix(map, text, out);
    else
        run_by_cluster(map, text, out);
}
