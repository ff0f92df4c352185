/* SPDX-License-Identifier: Apache-2.0
 *
 * There is one Knuth-Morris-Pratt automaton for each string. Its state is the number of the
 * string's first bytes with which the text ends, so the largest state is the number of bytes to
 * hold back.
 */
#include "plugin/text/stop_strings.h"

struct stop {
    char *text;    /* owned */
    size_t *retry; /* owned; [i]: state to retry from if byte i does not match */
    size_t n, state;
};

/* Marks of a held byte: AFTER_BLANKS: its token has only blanks before it. */
enum { PLAIN = '-', AFTER_BLANKS = '+' };

struct xm_stop_strings {
    struct stop *stops; /* owned */
    size_t n;
    /* The beginning of a stop string, after blanks that would be dropped with it. */
    struct xm_strbuf held;
    struct xm_strbuf places; /* the mark of each held byte; the first is PLAIN */
    bool stopped;
    size_t found; /* number, from 1, of the stop string found; 0: none */
    bool keeps_found;
    bool drops_blanks;
};

/* Returns the state after one more byte. */
static size_t
advance(const struct stop *s, size_t state, char c)
{
    while (state > 0 && (state == s->n || s->text[state] != c))
        state = s->retry[state];
    return s->text[state] == c ? state + 1 : 0;
}

static bool
init_stop(struct stop *s, struct xm_slice text)
{
    uint64_t bytes = 0;
    if (!xm_mul_size((uint64_t)text.n + 1, sizeof(*s->retry), &bytes))
        return false;
    s->n = text.n;
    s->text = xm_malloc(text.n);
    s->retry = xm_malloc((size_t)bytes);
    if (!s->text || !s->retry)
        return false;
    memcpy(s->text, text.text, text.n);
    s->retry[0] = s->retry[1] = 0;
    for (size_t i = 1; i < text.n; i++)
        s->retry[i + 1] = advance(s, s->retry[i], text.text[i]);
    return true;
}

enum xm_status
xm_stop_strings_create(const struct xm_slice *strings, size_t n,
                       struct xm_stop_strings **out, struct xm_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < n; i++)
        if (strings[i].n == 0)
            return xm_fail(err, XM_INVALID, "stop string %zu of %zu is empty", i + 1, n);
    struct xm_stop_strings *s = xm_calloc(1, sizeof(*s));
    struct stop *stops = xm_calloc(n > 0 ? n : 1, sizeof(*stops));
    bool ok = s && stops;
    for (size_t i = 0; ok && i < n; i++)
        ok = init_stop(&stops[i], strings[i]);
    if (s) {
        s->stops = stops;
        s->n = stops ? n : 0;
    }
    if (!ok) {
        xm_free(s ? NULL : stops);
        xm_stop_strings_free(s);
        return xm_no_memory(err, "%zu stop strings", n);
    }
    *out = s;
    return XM_OK;
}

void
xm_stop_strings_free(struct xm_stop_strings *stops)
{
    if (!stops)
        return;
    for (size_t i = 0; i < stops->n; i++) {
        xm_free(stops->stops[i].text);
        xm_free(stops->stops[i].retry);
    }
    xm_free(stops->stops);
    xm_strbuf_free(&stops->held);
    xm_strbuf_free(&stops->places);
    xm_free(stops);
}

static bool
copy_stop(struct stop *s, const struct stop *from)
{
    if (!init_stop(s, xm_slice_of(from->text, from->n)))
        return false;
    s->state = from->state;
    return true;
}

struct xm_stop_strings *
xm_stop_strings_copy(const struct xm_stop_strings *stops)
{
    struct xm_stop_strings *s = xm_calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    *s = *stops;
    s->held = s->places = (struct xm_strbuf){0};
    s->stops = xm_calloc(stops->n > 0 ? stops->n : 1, sizeof(*s->stops));
    s->n = s->stops ? stops->n : 0;
    bool ok = s->stops != NULL;
    for (size_t i = 0; ok && i < s->n; i++)
        ok = copy_stop(&s->stops[i], &stops->stops[i]);
    xm_strbuf_add_n(&s->held, xm_strbuf_text(&stops->held), stops->held.n);
    xm_strbuf_add_n(&s->places, xm_strbuf_text(&stops->places), stops->places.n);
    if (ok && xm_strbuf_ok(&s->held) && xm_strbuf_ok(&s->places))
        return s;
    xm_stop_strings_free(s);
    return NULL;
}

void
xm_stop_strings_keep_found(struct xm_stop_strings *stops)
{
    stops->keeps_found = true;
}

void
xm_stop_strings_drop_blanks(struct xm_stop_strings *stops)
{
    stops->drops_blanks = true;
}

static void
reset(struct xm_stop_strings *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->stops[i].state = 0;
    xm_strbuf_clear(&s->held);
    xm_strbuf_clear(&s->places);
}

/* Advances all automata by a byte. Returns the largest state; with *found, it is that of the
 * longest complete stop string. */
static size_t
advance_all(struct xm_stop_strings *s, char c, bool *found)
{
    size_t longest = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct stop *stop = &s->stops[i];
        stop->state = advance(stop, stop->state, c);
        bool complete = stop->state == stop->n;
        if (complete == *found ? stop->state > longest : complete) {
            longest = stop->state;
            s->found = complete ? i + 1 : s->found;
        }
        *found = *found || complete;
    }
    return longest;
}

/* Appends a part's bytes to `held`, up to the end of a stop string. Returns the length of the stop
 * string, or of its beginning, at the end. */
static size_t
take(struct xm_stop_strings *s, const char *text, size_t n)
{
    size_t keep = 0;
    bool is_blank = s->drops_blanks; /* the part has only blanks so far */
    for (size_t i = 0; i < n && !s->stopped; i++) {
        const char place = i > 0 && is_blank ? AFTER_BLANKS : PLAIN;
        keep = advance_all(s, text[i], &s->stopped);
        xm_strbuf_add_n(&s->held, text + i, 1);
        xm_strbuf_add_n(&s->places, &place, 1);
        is_blank = is_blank && (text[i] == ' ' || text[i] == '\n');
    }
    return keep;
}

static void
drop_front(struct xm_strbuf *b, size_t n)
{
    memmove(b->text, b->text + n, b->n - n + 1);
    b->n -= n;
}

enum xm_status
xm_stop_strings_push(struct xm_stop_strings *stops, const char *text, size_t n,
                     struct xm_strbuf *out, bool *stopped, struct xm_error *err)
{
    const size_t keep = n > 0 ? take(stops, text, n) : stops->held.n;
    if (!xm_strbuf_ok(&stops->held) || !xm_strbuf_ok(&stops->places))
        return xm_no_memory(err, "the text before a stop string");
    size_t certain = stops->held.n - keep;
    while (keep > 0 && stops->places.text[certain] == AFTER_BLANKS)
        certain--;
    if (stops->stopped && stops->keeps_found)
        certain = stops->held.n;
    xm_strbuf_add_n(out, xm_strbuf_text(&stops->held), certain);
    if (stops->stopped) {
        reset(stops);
    } else if (certain > 0) {
        drop_front(&stops->held, certain);
        drop_front(&stops->places, certain);
    }
    *stopped = stops->stopped;
    return xm_strbuf_ok(out) ? XM_OK : xm_no_memory(err, "text");
}

size_t
xm_stop_strings_found(const struct xm_stop_strings *stops)
{
    return stops->stopped ? stops->found : 0;
}

enum xm_status
xm_stop_strings_flush(struct xm_stop_strings *stops, struct xm_strbuf *out,
                      struct xm_error *err)
{
    xm_strbuf_add_n(out, xm_strbuf_text(&stops->held), stops->held.n);
    reset(stops);
    stops->stopped = false;
    return xm_strbuf_ok(out) ? XM_OK : xm_no_memory(err, "text");
}
