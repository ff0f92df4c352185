/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the bytes of one file into keys and tensors. Every count and length is compared with the
 * rest of the file before it is used. So the memory that a file can make the parser allocate is
 * proportional to the file's size, and the file is read once.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "plugin/readers/gguf_records.h"
#include "runtime/util/utf8.h"

enum {
    MOST_NESTED = 8, /* nesting depth of lists */
    MOST_KEY_BYTES = 65535,
    MOST_NAME_BYTES = 64, /* longest name of a tensor */
    DEFAULT_ALIGNMENT = 32,
    /* Least bytes of an entry: with a name of one byte and a value of one byte, or without
     * dimensions. */
    LEAST_KEY = 8 + 1 + 4 + 1,
    LEAST_TENSOR = 8 + 1 + 4 + 4 + 8,
    LEAST_TEXT = 8,
    LEAST_LIST = 4 + 8
};

struct cursor {
    const uint8_t *bytes;
    uint64_t n_bytes, at;
    struct xm_error *err;
};

/* ---- bytes --------------------------------------------------------------------------- */

static enum xm_status
take(struct cursor *c, uint64_t n, const char *what, const uint8_t **out)
{
    if (n > c->n_bytes - c->at)
        return xm_fail(c->err, XM_INVALID,
                       "%s: expected %" PRIu64 " bytes at byte %" PRIu64
                       ", the file ends at byte %" PRIu64 ": it may be incomplete",
                       what, n, c->at, c->n_bytes);
    *out = c->bytes + c->at;
    c->at += n;
    return XM_OK;
}

static enum xm_status
take_u32(struct cursor *c, const char *what, uint32_t *out)
{
    const uint8_t *p = NULL;
    XM_TRY(take(c, sizeof(*out), what, &p));
    memcpy(out, p, sizeof(*out));
    return XM_OK;
}

static enum xm_status
take_u64(struct cursor *c, const char *what, uint64_t *out)
{
    const uint8_t *p = NULL;
    XM_TRY(take(c, sizeof(*out), what, &p));
    memcpy(out, p, sizeof(*out));
    return XM_OK;
}

static enum xm_status
take_text(struct cursor *c, const char *what, struct xm_slice *out)
{
    const uint8_t *p = NULL;
    uint64_t n = 0;
    XM_TRY(take_u64(c, what, &n));
    XM_TRY(take(c, n, what, &p));
    *out = xm_slice_of((const char *)p, (size_t)n);
    return XM_OK;
}

/* Reads the number of entries that follow. Fails if the rest of the file is too short for that many
 * entries of at least `least` bytes. */
static enum xm_status
take_count(struct cursor *c, const char *what, uint64_t least, uint64_t *out)
{
    XM_TRY(take_u64(c, what, out));
    const uint64_t left = c->n_bytes - c->at;
    if (*out <= left / least)
        return XM_OK;
    return xm_fail(c->err, XM_INVALID,
                   "%s: there are %" PRIu64 ", of at least %" PRIu64
                   " bytes each, but after byte %" PRIu64 " the file has only %" PRIu64
                   " bytes: it may be incomplete",
                   what, *out, least, c->at, left);
}

/* Reads a name. It must be valid UTF-8 without control characters, because names are printed in
 * error messages. */
static enum xm_status
take_name(struct cursor *c, size_t most, struct xm_slice *out)
{
    XM_TRY(take_text(c, "its name", out));
    if (out->n == 0 || out->n > most)
        return xm_fail(c->err, XM_INVALID, "its name: expected 1 to %zu bytes, found %zu",
                       most, out->n);
    if (!xm_utf8_is_valid(*out))
        return xm_fail(c->err, XM_INVALID, "its name is not UTF-8");
    for (size_t i = 0; i < out->n; i++) {
        if ((unsigned char)out->text[i] < ' ' || out->text[i] == 0x7f)
            return xm_fail(c->err, XM_INVALID, "its name has a control character");
    }
    return XM_OK;
}

/* ---- keys ---------------------------------------------------------------------------- */

static enum xm_status
take_type(struct cursor *c, enum xm_element *out)
{
    uint32_t number = 0;
    XM_TRY(take_u32(c, "the type of its value", &number));
    if (xm_gguf_element(number, out))
        return XM_OK;
    return xm_fail(c->err, XM_INVALID,
                   "the type of its value: expected 0 to 12, found %" PRIu32, number);
}

static enum xm_status skip_values(struct cursor *c, enum xm_element element, uint64_t n,
                                  unsigned depth);

/* Reads the element type and the count of a list. */
static enum xm_status
take_list_head(struct cursor *c, enum xm_element *element, uint64_t *n)
{
    XM_TRY(take_type(c, element));
    const uint64_t least = *element == XM_STRING    ? LEAST_TEXT
                           : *element == XM_DYNAMIC ? LEAST_LIST
                                                    : xm_element_bits(*element) / 8;
    return take_count(c, "the values of its list", least, n);
}

static enum xm_status
skip_value(struct cursor *c, enum xm_element element, unsigned depth)
{
    enum xm_element inner;
    struct xm_slice text;
    uint64_t n = 0;
    if (element == XM_STRING)
        return take_text(c, "its text", &text);
    if (depth == MOST_NESTED)
        return xm_fail(c->err, XM_INVALID,
                       "at byte %" PRIu64 ": lists are nested deeper than %d levels",
                       c->at, MOST_NESTED);
    XM_TRY(take_list_head(c, &inner, &n));
    return skip_values(c, inner, n, depth + 1);
}

static enum xm_status
skip_values(struct cursor *c, enum xm_element element, uint64_t n, unsigned depth)
{
    const uint8_t *p = NULL;
    uint64_t bytes = 0;
    if (xm_element_bytes(element, n, &bytes))
        return take(c, bytes, "its value", &p);
    for (uint64_t i = 0; i < n; i++)
        XM_TRY(skip_value(c, element, depth));
    return XM_OK;
}

static enum xm_status
take_value(struct cursor *c, struct xm_gguf_key *k)
{
    struct xm_gguf_values *v = &k->value;
    v->key = k->name;
    v->n = 1;
    XM_TRY(take_type(c, &v->element));
    k->is_list = v->element == XM_DYNAMIC;
    if (k->is_list)
        XM_TRY(take_list_head(c, &v->element, &v->n));
    v->bytes.p = c->bytes + c->at;
    XM_TRY(skip_values(c, v->element, v->n, 1));
    v->bytes.n = (uint64_t)(c->bytes + c->at - v->bytes.p);
    return XM_OK;
}

static enum xm_status
take_key(struct cursor *c, uint64_t i, uint64_t n, struct xm_gguf_key *k)
{
    enum xm_status s = take_name(c, MOST_KEY_BYTES, &k->name);
    if (s != XM_OK) {
        xm_error_prefix(c->err, "key %" PRIu64 " of %" PRIu64, i + 1, n);
        return s;
    }
    s = take_value(c, k);
    if (s != XM_OK)
        xm_error_prefix(c->err, "key '%.*s'", XM_GGUF_SHOW(k->name));
    return s;
}

static enum xm_status
take_keys(struct cursor *c, struct xm_gguf_part *p, struct xm_arena *arena)
{
    struct xm_slice twice;
    struct xm_gguf_key *keys = xm_arena_alloc(arena, (size_t)p->n_keys * sizeof(*keys));
    p->keys_by_name = xm_arena_alloc(arena, (size_t)p->n_keys * sizeof(*p->keys_by_name));
    if (!keys || !p->keys_by_name)
        return xm_no_memory(c->err, "%" PRIu64 " keys", p->n_keys);
    p->keys = keys;
    for (uint64_t i = 0; i < p->n_keys; i++) {
        XM_TRY(take_key(c, i, p->n_keys, &keys[i]));
        p->keys_by_name[i] = &keys[i];
    }
    xm_gguf_sort_names(p->keys_by_name, p->n_keys, &twice);
    if (twice.n)
        return xm_fail(c->err, XM_INVALID, "key '%.*s' occurs twice",
                       XM_GGUF_SHOW(twice));
    return XM_OK;
}

static enum xm_status
find_alignment(struct xm_gguf_part *p, struct xm_error *err)
{
    static const char name[] = "general.alignment";
    const struct xm_gguf_key *k = xm_gguf_find_name(p->keys_by_name, p->n_keys, name);
    uint64_t x = DEFAULT_ALIGNMENT;
    if (k)
        XM_TRY(xm_gguf_whole(k, UINT32_MAX, &x, err));
    if (x == 0 || (x & (x - 1)))
        return xm_fail(err, XM_INVALID,
                       "key '%s': expected a power of two, found %" PRIu64, name, x);
    p->alignment = (uint32_t)x;
    return XM_OK;
}

/* ---- tensors ------------------------------------------------------------------------- */

/* Reads the dimensions of a tensor. *n is their product. */
static enum xm_status
take_dimensions(struct cursor *c, struct xm_gguf_tensor *t, uint64_t *n)
{
    XM_TRY(take_u32(c, "the number of its dimensions", &t->rank));
    if (t->rank > XM_GGUF_MAX_RANK)
        return xm_fail(c->err, XM_INVALID,
                       "expected at most %d dimensions, found %" PRIu32, XM_GGUF_MAX_RANK,
                       t->rank);
    *n = 1;
    for (uint32_t i = 0; i < XM_GGUF_MAX_RANK; i++) {
        t->ne[i] = 1;
        if (i < t->rank)
            XM_TRY(take_u64(c, "its dimensions", &t->ne[i]));
        if (t->ne[i] == 0 || t->ne[i] > INT64_MAX)
            return xm_fail(c->err, XM_INVALID,
                           "dimension %" PRIu32 ": expected 1 or more, found %" PRId64, i,
                           (int64_t)t->ne[i]);
        if (!xm_mul_size(*n, t->ne[i], n))
            return xm_fail(c->err, XM_INVALID,
                           "the product of its dimensions does not fit in 64 bits");
    }
    return XM_OK;
}

/* Reads the type of a tensor, and computes the bytes of its n elements. */
static enum xm_status
take_tensor_type(struct cursor *c, uint64_t n, struct xm_gguf_tensor *t)
{
    uint32_t number = 0;
    XM_TRY(take_u32(c, "its type", &number));
    t->type = xm_gguf_find_type(number);
    if (!t->type)
        return xm_fail(c->err, XM_UNSUPPORTED,
                       "its type is %" PRIu32 ", which is not a known ggml type", number);
    if (t->ne[0] % t->type->columns)
        return xm_fail(c->err, XM_INVALID,
                       "expected rows of whole blocks, %" PRIu32
                       " columns of %s each; found %" PRIu64 " columns",
                       t->type->columns, t->type->text, t->ne[0]);
    if (!xm_mul_size(n / t->type->columns, t->type->bytes, &t->data.n))
        return xm_fail(c->err, XM_INVALID, "its bytes do not fit in 64 bits");
    return XM_OK;
}

static enum xm_status
take_offset(struct cursor *c, uint32_t alignment, struct xm_gguf_tensor *t)
{
    XM_TRY(take_u64(c, "its offset", &t->offset));
    if (t->offset % alignment)
        return xm_fail(c->err, XM_INVALID,
                       "its offset: expected a multiple of %" PRIu32 ", found %" PRIu64,
                       alignment, t->offset);
    return XM_OK;
}

static enum xm_status
take_tensor(struct cursor *c, const struct xm_gguf_part *p, uint64_t i,
            struct xm_gguf_tensor *t)
{
    uint64_t n = 0;
    enum xm_status s = take_name(c, MOST_NAME_BYTES, &t->name);
    if (s != XM_OK) {
        xm_error_prefix(c->err, "tensor %" PRIu64 " of %" PRIu64, i + 1, p->n_tensors);
        return s;
    }
    s = take_dimensions(c, t, &n);
    if (s == XM_OK)
        s = take_tensor_type(c, n, t);
    if (s == XM_OK)
        s = take_offset(c, p->alignment, t);
    if (s != XM_OK)
        xm_error_prefix(c->err, "tensor '%.*s'", XM_GGUF_SHOW(t->name));
    return s;
}

/* Finds the bytes of a tensor. Offsets in the file are relative to `begin`, where the tensors'
 * bytes begin. */
static enum xm_status
place_tensor(struct cursor *c, struct xm_mapping *mapping, uint64_t begin,
             struct xm_gguf_tensor *t)
{
    uint64_t end = 0;
    if (!xm_add_size(begin, t->offset, &t->offset) ||
        !xm_add_size(t->offset, t->data.n, &end) || end > c->n_bytes)
        return xm_fail(c->err, XM_INVALID,
                       "tensor '%.*s': expected %" PRIu64 " bytes at byte %" PRIu64
                       ", the file ends at byte %" PRIu64 ": it may be incomplete",
                       XM_GGUF_SHOW(t->name), t->data.n, t->offset, c->n_bytes);
    t->data.p = c->bytes + t->offset;
    t->mapping = mapping;
    return XM_OK;
}

static int
compare_places(const void *a, const void *b)
{
    const struct xm_gguf_tensor *x = *(const struct xm_gguf_tensor *const *)a;
    const struct xm_gguf_tensor *y = *(const struct xm_gguf_tensor *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Fails if the bytes of two tensors overlap. */
static enum xm_status
check_apart(const struct xm_gguf_tensor *tensors, uint64_t n, struct xm_arena *arena,
            struct xm_error *err)
{
    const struct xm_gguf_tensor **list = xm_arena_alloc(arena, (size_t)n * sizeof(*list));
    if (!list)
        return xm_no_memory(err, "%" PRIu64 " tensors", n);
    for (uint64_t i = 0; i < n; i++)
        list[i] = &tensors[i];
    qsort(list, (size_t)n, sizeof(*list), compare_places);
    for (uint64_t i = 1; i < n; i++) {
        const struct xm_gguf_tensor *a = list[i - 1], *b = list[i];
        if (b->offset - a->offset < a->data.n)
            return xm_fail(err, XM_INVALID,
                           "tensors '%.*s' and '%.*s' share bytes: expected the second "
                           "at byte %" PRIu64 " or later, found byte %" PRIu64,
                           XM_GGUF_SHOW(a->name), XM_GGUF_SHOW(b->name),
                           a->offset + a->data.n, b->offset);
    }
    return XM_OK;
}

static enum xm_status
take_tensors(struct cursor *c, struct xm_gguf_part *p, struct xm_arena *arena)
{
    struct xm_gguf_tensor *tensors;
    if (p->n_tensors == 0)
        return XM_OK;
    tensors = xm_arena_alloc(arena, (size_t)p->n_tensors * sizeof(*tensors));
    if (!tensors)
        return xm_no_memory(c->err, "%" PRIu64 " tensors", p->n_tensors);
    p->tensors = tensors;
    for (uint64_t i = 0; i < p->n_tensors; i++)
        XM_TRY(take_tensor(c, p, i, &tensors[i]));
    const uint64_t begin = xm_align_up(c->at, p->alignment);
    for (uint64_t i = 0; i < p->n_tensors; i++)
        XM_TRY(place_tensor(c, p->mapping, begin, &tensors[i]));
    return check_apart(tensors, p->n_tensors, arena, c->err);
}

/* ---- the file ------------------------------------------------------------------------ */

static enum xm_status
check_version(uint32_t version, struct xm_error *err)
{
    if (version == 2 || version == 3)
        return XM_OK;
    if (version && (version & 0xffff) == 0)
        return xm_fail(err, XM_UNSUPPORTED,
                       "it is a big-endian GGUF file; expected a little-endian one");
    return xm_fail(err, XM_UNSUPPORTED,
                   "expected version 2 or 3 of GGUF, found version %" PRIu32, version);
}

static enum xm_status
take_header(struct cursor *c, struct xm_gguf_part *p)
{
    static const char magic[] = "GGUF";
    const size_t n_magic = sizeof(magic) - 1;
    if (c->n_bytes < n_magic || memcmp(c->bytes, magic, n_magic) != 0)
        return xm_fail(c->err, XM_INVALID,
                       "it is not a GGUF file: it does not begin with %s", magic);
    c->at = n_magic;
    XM_TRY(take_u32(c, "the version", &p->version));
    XM_TRY(check_version(p->version, c->err));
    XM_TRY(take_count(c, "tensors", LEAST_TENSOR, &p->n_tensors));
    return take_count(c, "keys", LEAST_KEY, &p->n_keys);
}

enum xm_status
xm_gguf_parse(struct xm_gguf_part *p, const uint8_t *bytes, struct xm_arena *arena,
              struct xm_error *err)
{
    struct cursor c = {.bytes = bytes, .n_bytes = p->n_bytes, .err = err};
    XM_TRY(take_header(&c, p));
    XM_TRY(take_keys(&c, p, arena));
    XM_TRY(find_alignment(p, err));
    return take_tensors(&c, p, arena);
}
