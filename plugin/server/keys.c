/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/keys.h"

#include <string.h>

#include "runtime/util/mapped_file.h"

static enum xm_status
add_key(struct xm_keys *k, struct xm_slice line, size_t number, struct xm_error *err)
{
    for (size_t i = 0; i < line.n; i++) {
        if (line.text[i] <= ' ' || line.text[i] > '~')
            return xm_fail(
                err, XM_INVALID,
                "line %zu: a key must have only ASCII characters and no blanks", number);
    }
    if (line.n > XM_MOST_KEY_BYTES)
        return xm_fail(err, XM_INVALID, "line %zu: a key can have at most %d characters",
                       number, XM_MOST_KEY_BYTES);
    if (k->n == XM_MOST_KEYS)
        return xm_fail(err, XM_INVALID, "there are more than %d keys", XM_MOST_KEYS);
    k->all[k->n++] = line;
    return XM_OK;
}

static struct xm_slice
trim(struct xm_slice s)
{
    while (s.n > 0 && strchr(" \t\r", s.text[s.n - 1]))
        s.n--;
    for (; s.n > 0 && strchr(" \t", s.text[0]); s.n--)
        s.text++;
    return s;
}

static enum xm_status
read_lines(struct xm_keys *k, size_t n, struct xm_error *err)
{
    size_t number = 1;
    for (size_t at = 0; at < n; number++) {
        const char *end = memchr(k->text + at, '\n', n - at);
        const size_t length = end ? (size_t)(end - k->text) - at : n - at;
        const struct xm_slice line = trim(xm_slice_of(k->text + at, length));
        if (line.n > 0 && line.text[0] != '#')
            XM_TRY(add_key(k, line, number, err));
        at += length + 1;
    }
    return k->n ? XM_OK : xm_fail(err, XM_INVALID, "it contains no key");
}

enum xm_status
xm_keys_read(const char *path, struct xm_keys *out, struct xm_error *err)
{
    struct xm_mapped_file file;
    struct xm_error why = {0};
    *out = (struct xm_keys){.n = 0};
    XM_TRY(xm_mapped_file_open(path, &file, err));
    const size_t n = (size_t)file.n_bytes;
    enum xm_status s = XM_OK;
    if (file.n_bytes > XM_MOST_KEYS * (XM_MOST_KEY_BYTES + 2))
        s = xm_fail(&why, XM_INVALID, "it is too large for a list of keys");
    if (s == XM_OK) {
        out->text = xm_malloc(n + 1);
        out->all = xm_calloc(XM_MOST_KEYS, sizeof(*out->all));
        s = out->text && out->all ? XM_OK : xm_no_memory(&why, "the keys");
    }
    if (s == XM_OK) {
        memcpy(out->text, file.bytes, n);
        s = read_lines(out, n, &why);
    }
    xm_mapped_file_close(&file);
    if (s == XM_OK)
        return XM_OK;
    xm_keys_free(out);
    return xm_fail(err, s, "the keys of '%s': %s", path, why.text);
}

void
xm_keys_free(struct xm_keys *k)
{
    xm_free(k->text);
    xm_free(k->all);
    *k = (struct xm_keys){.n = 0};
}

/* Returns whether the text differs from the key. Reads every character of the text, so that the
 * time does not depend on the key. */
static unsigned
differs(struct xm_slice key, const char *text, size_t n)
{
    volatile unsigned different = key.n != n;
    for (size_t i = 0; i < n; i++)
        different |= (unsigned char)text[i] ^ (unsigned char)key.text[i % key.n];
    return different;
}

bool
xm_keys_has(const struct xm_keys *k, const char *text)
{
    const size_t n = strlen(text);
    unsigned found = 0;
    for (size_t i = 0; i < k->n; i++)
        found |= differs(k->all[i], text, n) == 0;
    return found != 0;
}
