/* SPDX-License-Identifier: Apache-2.0
 *
 * Classes of characters, and the units that spell them as bytes.
 *
 *     class  ──► sequences of byte ranges  ──► nodes with edges, equal nodes shared
 *     [é-ü]      C3 A9..BC                     0 ─C3─► 1 ─A9..BC─► end
 */
#include <stdlib.h>
#include <string.h>

#include "plugin/text/grammar_parts.h"

/* ---- classes ---------------------------------------------------------------------- */

void
xm_class_add(struct xm_class *c, uint32_t low, uint32_t high)
{
    struct xm_code_range *grown =
        c->failed ? NULL : xm_grow(c->ranges, &c->capacity, c->n + 1, sizeof(*grown));
    if (!grown) {
        c->failed = true;
        return;
    }
    c->ranges = grown;
    c->ranges[c->n++] = (struct xm_code_range){low, high};
}

static int
compare_ranges(const void *a, const void *b)
{
    const struct xm_code_range *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

/* Removes U+D800 to U+DFFF from the class, because surrogates are not characters. */
static void
remove_surrogates(struct xm_class *c)
{
    const size_t n = c->n;
    for (size_t i = 0; i < n; i++) {
        const struct xm_code_range r = c->ranges[i];
        if (r.high < 0xd800 || r.low > 0xdfff)
            continue;
        c->ranges[i] = (struct xm_code_range){1, 0};
        if (r.low < 0xd800)
            c->ranges[i] = (struct xm_code_range){r.low, 0xd7ff};
        if (r.high > 0xdfff)
            xm_class_add(c, 0xe000, r.high);
    }
}

void
xm_class_normalise(struct xm_class *c)
{
    size_t n = 0;
    remove_surrogates(c);
    if (c->n > 0)
        qsort(c->ranges, c->n, sizeof(*c->ranges), compare_ranges);
    for (size_t i = 0; i < c->n; i++) {
        const struct xm_code_range r = c->ranges[i];
        if (r.low > r.high)
            continue;
        if (n > 0 && r.low <= c->ranges[n - 1].high + 1) {
            if (r.high > c->ranges[n - 1].high)
                c->ranges[n - 1].high = r.high;
        } else {
            c->ranges[n++] = r;
        }
    }
    c->n = n;
}

void
xm_class_negate(struct xm_class *c)
{
    struct xm_class out = {.failed = c->failed};
    uint32_t next = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->ranges[i].low > next)
            xm_class_add(&out, next, c->ranges[i].low - 1);
        next = c->ranges[i].high + 1;
    }
    if (next <= XM_CODE_POINT_MOST)
        xm_class_add(&out, next, XM_CODE_POINT_MOST);
    xm_class_normalise(&out);
    xm_class_free(c);
    *c = out;
}

bool
xm_class_has(const struct xm_class *c, uint32_t code)
{
    for (size_t i = 0; i < c->n; i++)
        if (code >= c->ranges[i].low && code <= c->ranges[i].high)
            return true;
    return false;
}

void
xm_class_free(struct xm_class *c)
{
    xm_free(c->ranges);
    *c = (struct xm_class){0};
}

/* ---- sequences of byte ranges ----------------------------------------------------- */

enum { LONGEST = 12 }; /* bytes of two \uXXXX escapes */

struct sequence {
    uint8_t low[LONGEST], high[LONGEST], n;
};

struct sequences {
    struct sequence *list;
    size_t n, capacity;
    bool failed;
};

static void
add_sequence(struct sequences *s, const struct sequence *one)
{
    struct sequence *grown =
        s->failed ? NULL : xm_grow(s->list, &s->capacity, s->n + 1, sizeof(*grown));
    if (!grown) {
        s->failed = true;
        return;
    }
    s->list = grown;
    s->list[s->n++] = *one;
}

static uint8_t
encode(uint32_t code, uint8_t out[4])
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    const uint8_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (uint8_t i = n; i-- > 1; code >>= 6)
        out[i] = (uint8_t)(0x80 | (code & 0x3f));
    out[0] = (uint8_t)(lead[n] | code);
    return n;
}

/* Adds the characters low..high as sequences of byte ranges. The range is cut where the number of
 * bytes changes, and so that in each sequence all bytes behind the first range are 80..BF. */
static void
add_utf8(struct sequences *s, uint32_t low, uint32_t high)
{
    static const uint32_t ends[] = {0x7f, 0x7ff, 0xffff};
    for (size_t i = 0; i < XM_ARRAY_LEN(ends); i++)
        if (low <= ends[i] && high > ends[i]) {
            add_utf8(s, low, ends[i]);
            add_utf8(s, ends[i] + 1, high);
            return;
        }
    for (uint32_t bits = 6; high >= 0x80 && bits <= 18; bits += 6) {
        const uint32_t tail = (1u << bits) - 1;
        if ((low & ~tail) == (high & ~tail))
            break;
        if ((low & tail) != 0) {
            add_utf8(s, low, low | tail);
            add_utf8(s, (low | tail) + 1, high);
            return;
        }
        if ((high & tail) != tail) {
            add_utf8(s, low, (high & ~tail) - 1);
            add_utf8(s, high & ~tail, high);
            return;
        }
    }
    struct sequence one = {.n = encode(low, one.low)};
    encode(high, one.high);
    add_sequence(s, &one);
}

/* ---- spellings within JSON strings ------------------------------------------------ */

/* Returns the letter of a character's short JSON escape; 0: it has none. */
static uint8_t
short_escape(uint32_t code)
{
    switch (code) {
    case '"':
    case '\\':
        return (uint8_t)code;
    case '\b':
        return 'b';
    case '\t':
        return 't';
    case '\n':
        return 'n';
    case '\f':
        return 'f';
    case '\r':
        return 'r';
    default:
        return 0;
    }
}

static void
push(struct sequence *s, uint8_t low, uint8_t high)
{
    s->low[s->n] = low;
    s->high[s->n++] = high;
}

/* Adds the sequence `s` followed by n hexadecimal digits of any value and case. */
static void
add_hex(struct sequences *out, struct sequence s, int n)
{
    static const uint8_t digits[][2] = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
    if (n == 0) {
        add_sequence(out, &s);
        return;
    }
    for (size_t i = 0; i < XM_ARRAY_LEN(digits); i++) {
        struct sequence next = s;
        push(&next, digits[i][0], digits[i][1]);
        add_hex(out, next, n - 1);
    }
}

static struct sequence
escape(uint8_t letter)
{
    struct sequence s = {0};
    push(&s, '\\', '\\');
    push(&s, letter, letter);
    return s;
}

/* Adds the sequence `high`, the high half of a surrogate pair, followed by the escape of any low
 * half. */
static void
add_low_surrogates(struct sequences *out, const struct sequence *high, int hex)
{
    static const uint8_t digits[][2] = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
    static const uint8_t fourths[][2] = {{'C', 'F'}, {'c', 'f'}};
    static const uint8_t d[] = {'D', 'd'};
    for (size_t i = 0; hex > 0 && i < XM_ARRAY_LEN(digits); i++) {
        struct sequence next = *high;
        push(&next, digits[i][0], digits[i][1]);
        add_low_surrogates(out, &next, hex - 1);
    }
    for (size_t i = 0; hex == 0 && i < 2; i++)
        for (size_t k = 0; k < 2; k++) {
            struct sequence s = *high;
            push(&s, '\\', '\\');
            push(&s, 'u', 'u');
            push(&s, d[i], d[i]);
            push(&s, fourths[k][0], fourths[k][1]);
            add_hex(out, s, 2);
        }
}

/* Adds all escapes of RFC 8259; surrogates only in pairs. */
static void
add_all_escapes(struct sequences *out)
{
    static const char letters[] = "\"/\\bfnrt";
    static const uint8_t firsts[][2] = {
        {'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}};
    static const uint8_t highs[][2] = {{'8', '9'}, {'A', 'B'}, {'a', 'b'}};
    static const uint8_t d[] = {'D', 'd'};
    for (const char *c = letters; *c; c++) {
        const struct sequence s = escape((uint8_t)*c);
        add_sequence(out, &s);
    }
    for (size_t i = 0; i < XM_ARRAY_LEN(firsts); i++) {
        struct sequence s = escape('u');
        push(&s, firsts[i][0], firsts[i][1]);
        add_hex(out, s, 3);
    }
    for (size_t i = 0; i < XM_ARRAY_LEN(d); i++) {
        struct sequence s = escape('u'), plain;
        push(&s, d[i], d[i]);
        plain = s;
        push(&plain, '0', '7');
        add_hex(out, plain, 2);
        for (size_t k = 0; k < XM_ARRAY_LEN(highs); k++) {
            struct sequence high = s;
            push(&high, highs[k][0], highs[k][1]);
            add_low_surrogates(out, &high, 2);
        }
    }
}

/* Adds the escapes of the characters of `c` that JSON requires to be escaped, one spelling for
 * each. */
static void
add_needed_escapes(struct sequences *out, const struct xm_class *c)
{
    for (uint32_t code = 0; code < 128; code++)
        if (short_escape(code) && xm_class_has(c, code)) {
            const struct sequence s = escape(short_escape(code));
            add_sequence(out, &s);
        }
    for (uint32_t code = 0; code < 0x20; code++) {
        struct sequence s = escape('u');
        const uint8_t digit = (uint8_t) "0123456789abcdef"[code & 15];
        if (short_escape(code) || !xm_class_has(c, code))
            continue;
        push(&s, '0', '0');
        push(&s, '0', '0');
        push(&s, (uint8_t)('0' + (code >> 4)), (uint8_t)('0' + (code >> 4)));
        push(&s, digit, digit);
        add_sequence(out, &s);
    }
}

static void
spell(struct sequences *out, const struct xm_class *c, enum xm_spelling spelling)
{
    const bool is_json = spelling != XM_SPELL_PLAIN;
    struct xm_class plain = {0};
    if (spelling == XM_SPELL_JSON_ANY)
        xm_class_add(&plain, 0, XM_CODE_POINT_MOST);
    for (size_t i = 0; spelling != XM_SPELL_JSON_ANY && i < c->n; i++)
        xm_class_add(&plain, c->ranges[i].low, c->ranges[i].high);
    if (is_json) {
        xm_class_normalise(&plain);
        xm_class_negate(&plain);
        xm_class_add(&plain, 0, 0x1f);
        xm_class_add(&plain, '"', '"');
        xm_class_add(&plain, '\\', '\\');
        xm_class_normalise(&plain);
        xm_class_negate(&plain);
    }
    for (size_t i = 0; i < plain.n; i++)
        add_utf8(out, plain.ranges[i].low, plain.ranges[i].high);
    if (spelling == XM_SPELL_JSON)
        add_needed_escapes(out, c);
    else if (spelling == XM_SPELL_JSON_ANY)
        add_all_escapes(out);
    out->failed |= plain.failed;
    xm_class_free(&plain);
}

/* ---- nodes ------------------------------------------------------------------------ */

struct building {
    struct xm_grammar_tree *t;
    uint32_t first; /* first node of the unit */
    const struct sequence *list;
};

static void
fail(struct xm_grammar_tree *t, enum xm_status status)
{
    if (t->failed == XM_OK)
        t->failed = status;
}

/* Returns the node with the edges from first_edge on, which are the last of t->unit_edges: an equal
 * node of the unit, or a new one. */
static uint16_t
add_node(struct building *b, uint32_t first_edge)
{
    struct xm_grammar_tree *t = b->t;
    const uint32_t n = (uint32_t)t->n_unit_edges - first_edge;
    for (size_t i = b->first; i < t->n_unit_nodes; i++) {
        const struct xm_unit_node *o = &t->unit_nodes[i];
        if (o->n == n && memcmp(&t->unit_edges[o->first], &t->unit_edges[first_edge],
                                n * sizeof(*t->unit_edges)) == 0) {
            t->n_unit_edges = first_edge;
            return (uint16_t)(i - b->first);
        }
    }
    struct xm_unit_node *grown = xm_grow(t->unit_nodes, &t->unit_nodes_capacity,
                                         t->n_unit_nodes + 1, sizeof(*grown));
    if (!grown || t->n_unit_nodes - b->first >= XM_UNIT_END) {
        fail(t, grown ? XM_UNSUPPORTED : XM_NO_MEMORY);
        t->unit_nodes = grown ? grown : t->unit_nodes;
        return 0;
    }
    t->unit_nodes = grown;
    t->unit_nodes[t->n_unit_nodes] = (struct xm_unit_node){first_edge, n};
    return (uint16_t)(t->n_unit_nodes++ - b->first);
}

static void
add_edge(struct xm_grammar_tree *t, struct xm_unit_edge e)
{
    struct xm_unit_edge *grown = xm_grow(t->unit_edges, &t->unit_edges_capacity,
                                         t->n_unit_edges + 1, sizeof(*grown));
    if (!grown) {
        fail(t, XM_NO_MEMORY);
        return;
    }
    t->unit_edges = grown;
    t->unit_edges[t->n_unit_edges++] = e;
}

enum { MOST_EDGES = 256 }; /* of one node: at most one for each byte */

/* Returns the node that reads the sequences [from, to) from byte `at` on; they agree in the bytes
 * before. */
static uint16_t
build(struct building *b, size_t from, size_t to, uint8_t at)
{
    struct xm_unit_edge edges[MOST_EDGES];
    size_t n = 0;
    while (from < to && b->t->failed == XM_OK && n < MOST_EDGES) {
        const struct sequence *s = &b->list[from];
        size_t end = from + 1;
        while (end < to && b->list[end].low[at] == s->low[at])
            end++;
        edges[n] = (struct xm_unit_edge){s->low[at], s->high[at], XM_UNIT_END};
        if (s->n > at + 1)
            edges[n].next = build(b, from, end, (uint8_t)(at + 1));
        n++;
        from = end;
    }
    const uint32_t first = (uint32_t)b->t->n_unit_edges;
    for (size_t i = 0; i < n; i++)
        add_edge(b->t, edges[i]);
    return b->t->failed == XM_OK ? add_node(b, first) : 0;
}

static bool
covers_non_ascii(const struct xm_class *c)
{
    bool low = false, high = false;
    for (size_t i = 0; i < c->n; i++) {
        low |= c->ranges[i].low <= 0x80 && c->ranges[i].high >= 0xd7ff;
        high |= c->ranges[i].low <= 0xe000 && c->ranges[i].high >= XM_CODE_POINT_MOST;
    }
    return low && high;
}

static bool
equal_units(const struct xm_grammar_tree *t, const struct xm_unit *a,
            const struct xm_unit *b)
{
    if (a->hash != b->hash || a->n != b->n || a->start != b->start)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct xm_unit_node *x = &t->unit_nodes[a->first + i];
        const struct xm_unit_node *y = &t->unit_nodes[b->first + i];
        if (x->n != y->n || memcmp(&t->unit_edges[x->first], &t->unit_edges[y->first],
                                   x->n * sizeof(*t->unit_edges)) != 0)
            return false;
    }
    return true;
}

/* Adds the unit `u` and returns its index. If there is an equal unit, returns that one and drops
 * the nodes and edges of `u`, which are the last of the tree. */
static uint32_t
keep_unit(struct xm_grammar_tree *t, const struct xm_unit *u, uint32_t first_edge)
{
    struct xm_hash_probe p = xm_hash_begin(u->hash);
    while (xm_hash_next(&t->unit_index, &p))
        if (equal_units(t, &t->units[p.item], u)) {
            t->n_unit_nodes = u->first;
            t->n_unit_edges = first_edge;
            return p.item;
        }
    struct xm_unit *grown =
        xm_grow(t->units, &t->units_capacity, t->n_units + 1, sizeof(*grown));
    if (grown)
        t->units = grown;
    if (!grown || !xm_hash_add(&t->unit_index, u->hash, (uint32_t)t->n_units)) {
        fail(t, XM_NO_MEMORY);
        return 0;
    }
    t->units[t->n_units] = *u;
    return (uint32_t)t->n_units++;
}

uint32_t
xm_tree_add_unit(struct xm_grammar_tree *t, const struct xm_class *c,
                 enum xm_spelling spelling)
{
    struct sequences s = {0};
    struct xm_unit u = {.first = (uint32_t)t->n_unit_nodes};
    const uint32_t first_edge = (uint32_t)t->n_unit_edges;
    if (c->failed)
        fail(t, XM_NO_MEMORY);
    if (c->n > XM_GRAMMAR_MOST_RANGES)
        fail(t, XM_UNSUPPORTED);
    if (t->failed != XM_OK)
        return 0;
    spell(&s, c, spelling);
    if (s.failed)
        fail(t, XM_NO_MEMORY);
    struct building b = {t, u.first, s.list};
    u.start = t->failed == XM_OK ? build(&b, 0, s.n, 0) : 0;
    u.n = (uint32_t)t->n_unit_nodes - u.first;
    u.all_non_ascii = spelling == XM_SPELL_JSON_ANY || covers_non_ascii(c);
    for (size_t i = 0; i < s.n; i++)
        for (uint32_t byte = s.list[i].low[0];
             s.list[i].n == 1 && byte <= s.list[i].high[0]; byte++)
            u.ascii[byte / 64] |= (uint64_t)1 << byte % 64;
    u.hash =
        xm_hash_bytes(XM_HASH_SEED, t->unit_edges ? &t->unit_edges[first_edge] : NULL,
                      (t->n_unit_edges - first_edge) * sizeof(*t->unit_edges));
    xm_free(s.list);
    return t->failed == XM_OK ? keep_unit(t, &u, first_edge) : 0;
}
