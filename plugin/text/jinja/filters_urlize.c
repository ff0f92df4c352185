/* SPDX-License-Identifier: Apache-2.0
 *
 * The filter urlize: escapes a text and turns words that are addresses into links.
 *
 *     word -> opening signs, address, closing signs -> signs, <a href="…">address</a>, signs
 *
 * An address begins with http://, https:// or www., or is a name in one of the oldest top-level
 * domains, or is a mail address, or begins with a scheme that the caller gives.
 */
#include <stdlib.h>

#include "plugin/text/jinja/filters.h"
#include "plugin/text/jinja/methods.h"
#include "plugin/text/regex.h"
#include "runtime/util/utf8.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

#define W "\\p{L}\\p{N}_"
#define D "\\p{Nd}"

static const char web_pattern[] =
    "\\A(?i:"
    "(?:https?://|www\\.)(?:[" W "%-]+\\.)*(?:[a-z]{2,63}|xn--[" W "%]{2,59})|"
    "(?:[" W "%-]{2,63}\\.)+(?:com|net|int|edu|gov|org|info|mil)|"
    "https?://(?:" D "{1,3}(?:\\." D "{1,3}){3}|"
    "\\[(?:[" D "a-f]{0,4}:){2}(?:[" D "a-f]{0,4}:?){1,6}\\]))"
    "(?::" D "{1,5})?(?:[/?#]\\S*)?\\z";
static const char mail_pattern[] = "\\A\\S+@[" W "][" W ".-]*\\.[" W "]+\\z";
static const char scheme_pattern[] = "\\A[" W ".+-]{2,}:/{0,2}\\z";

enum pattern { WEB, MAIL, SCHEME, N_PATTERNS };
static const char *const patterns[N_PATTERNS] = {web_pattern, mail_pattern,
                                                 scheme_pattern};

/* The state of one call of the filter. */
struct links {
    struct xm_jinja_run *r;
    struct xm_regex *regex[N_PATTERNS];
    struct xm_span_list spans;   /* scratch */
    struct xm_slice rel, target; /* HTML attributes with a space before each; "": none */
    const struct xm_jinja_list *schemes; /* NULL: none */
    bool trims;
    int64_t trim_limit; /* characters of an address to show; < 0: counted from its end */
    struct xm_jinja_buffer out;
};

static struct xm_slice
slice_of(const char *text)
{
    return xm_slice_of(text, strlen(text));
}

static struct xm_slice
rest_of(struct xm_slice s, size_t from)
{
    return xm_slice_of(s.text + from, s.n - from);
}

static bool
ends_with(struct xm_slice s, const char *end)
{
    const size_t n = strlen(end);
    return s.n >= n && memcmp(s.text + s.n - n, end, n) == 0;
}

/* Sets *out to whether `s` matches a pattern. A failure of the regex library is reported with the
 * position in the template. */
static enum xm_status
matches(struct links *l, enum pattern pattern, struct xm_slice s, bool *out)
{
    struct xm_error err = {0};
    enum xm_status status = XM_OK;
    *out = false;
    if (!l->regex[pattern])
        status = xm_regex_create(slice_of(patterns[pattern]), &l->regex[pattern], &err);
    if (status == XM_OK)
        status = xm_regex_spans(l->regex[pattern], s, &l->spans, &err);
    if (status != XM_OK)
        return xm_jinja_fail(l->r, "urlize: %s", err.text);
    *out = l->spans.n == 1 && l->spans.spans[0].is_match;
    return xm_jinja_charge_text(l->r, s.n);
}

/* ---- signs around an address --------------------------------------------------------- */

static size_t
opening_signs(struct xm_slice word)
{
    size_t n = 0;
    while (n < word.n) {
        const struct xm_slice rest = rest_of(word, n);
        if (rest.text[0] == '(' || rest.text[0] == '<')
            n++;
        else if (xm_slice_starts_with(rest, slice_of("&lt;")))
            n += 4;
        else
            break;
    }
    return n;
}

static size_t
closing_signs(struct xm_slice word)
{
    struct xm_slice s = word;
    while (s.n > 0) {
        if (strchr(")>.,", s.text[s.n - 1]) && s.text[s.n - 1])
            s.n--;
        else if (ends_with(s, "&gt;"))
            s.n -= 4;
        else
            break;
    }
    return word.n - s.n;
}

/* Counts the occurrences of `what` in `s`. *end is the end of occurrence number `wanted`, from 1,
 * if there are as many. */
static size_t
count_of(struct xm_slice s, const char *what, size_t wanted, size_t *end)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n;) {
        if (!xm_slice_starts_with(rest_of(s, i), slice_of(what))) {
            i++;
            continue;
        }
        i += strlen(what);
        if (++n == wanted)
            *end = i;
    }
    return n;
}

/* Returns the number of bytes of the closing signs that belong to the address, because they close
 * brackets that it opens. */
static size_t
balance(struct xm_slice word, size_t n_address)
{
    static const char *const pairs[][2] = {{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}};
    size_t none;
    for (size_t i = 0; i < XM_ARRAY_LEN(pairs); i++) {
        const struct xm_slice address = {word.text, n_address},
                              tail = rest_of(word, n_address);
        const size_t opened = count_of(address, pairs[i][0], 0, &none);
        if (opened <= count_of(address, pairs[i][1], 0, &none))
            continue;
        const size_t closed = count_of(tail, pairs[i][1], 0, &none);
        size_t end = 0;
        count_of(tail, pairs[i][1], opened < closed ? opened : closed, &end);
        n_address += end;
    }
    return n_address;
}

/* ---- links --------------------------------------------------------------------------- */

static void
add(struct links *l, const char *text)
{
    xm_strbuf_add(&l->out.text, text);
}

static void
add_link(struct links *l, const char *before, struct xm_slice address,
         struct xm_slice shown, bool has_attributes)
{
    add(l, "<a href=\"");
    add(l, before);
    xm_jinja_add(l->r, &l->out, address);
    add(l, "\"");
    if (has_attributes) {
        xm_jinja_add(l->r, &l->out, l->rel);
        xm_jinja_add(l->r, &l->out, l->target);
    }
    add(l, ">");
    xm_jinja_add(l->r, &l->out, shown);
    if (has_attributes && l->trims && shown.n < address.n)
        add(l, "...");
    add(l, "</a>");
}

static struct xm_slice
trimmed(const struct links *l, struct xm_slice address)
{
    const int64_t n = (int64_t)xm_jinja_count(address);
    if (!l->trims || n <= l->trim_limit)
        return address;
    const int64_t kept = l->trim_limit >= 0      ? l->trim_limit
                         : n + l->trim_limit > 0 ? n + l->trim_limit
                                                 : 0;
    return xm_slice_of(address.text, xm_jinja_offset(address, (size_t)kept));
}

/* Adds a link if `s` begins with one of the caller's schemes, else plain text. */
static void
add_other(struct links *l, struct xm_slice s)
{
    for (size_t i = 0; l->schemes && i < l->schemes->n; i++) {
        const struct xm_slice scheme = l->schemes->items[i].text;
        if (s.n > scheme.n && xm_slice_starts_with(s, scheme)) {
            add_link(l, "", s, s, true);
            return;
        }
    }
    xm_jinja_add(l->r, &l->out, s);
}

static enum xm_status
add_address(struct links *l, struct xm_slice s)
{
    bool is_it = false;
    XM_TRY(matches(l, WEB, s, &is_it));
    if (is_it) {
        const bool whole = xm_slice_starts_with(s, slice_of("https://")) ||
                           xm_slice_starts_with(s, slice_of("http://"));
        add_link(l, whole ? "" : "https://", s, trimmed(l, s), true);
        return XM_OK;
    }
    const struct xm_slice mailto = slice_of("mailto:");
    if (xm_slice_starts_with(s, mailto)) {
        XM_TRY(matches(l, MAIL, rest_of(s, mailto.n), &is_it));
        if (is_it) {
            add_link(l, "", s, rest_of(s, mailto.n), false);
            return XM_OK;
        }
    }
    const bool may_be_mail = s.n > 0 && s.text[0] != '@' && !memchr(s.text, ':', s.n) &&
                             !xm_slice_starts_with(s, slice_of("www."));
    if (may_be_mail)
        XM_TRY(matches(l, MAIL, s, &is_it));
    if (is_it)
        add_link(l, "mailto:", s, s, false);
    else
        add_other(l, s);
    return XM_OK;
}

static enum xm_status
add_word(struct links *l, struct xm_slice word)
{
    if (word.n == 0)
        return XM_OK;
    const size_t head = opening_signs(word);
    const struct xm_slice rest = rest_of(word, head);
    const size_t n_address = balance(rest, rest.n - closing_signs(rest));
    xm_jinja_add(l->r, &l->out, xm_slice_of(word.text, head));
    XM_TRY(add_address(l, xm_slice_of(rest.text, n_address)));
    xm_jinja_add(l->r, &l->out, rest_of(rest, n_address));
    return xm_jinja_check_size(l->r, &l->out);
}

static enum xm_status
add_words(struct links *l, struct xm_slice s)
{
    size_t from = 0;
    for (size_t at = 0, n; at < s.n; at += n) {
        int32_t code;
        n = xm_utf8_next(rest_of(s, at), &code);
        if (!xm_jinja_is_space(code))
            continue;
        XM_TRY(add_word(l, xm_slice_of(s.text + from, at - from)));
        xm_jinja_add(l->r, &l->out, xm_slice_of(s.text + at, n));
        from = at + n;
    }
    return add_word(l, rest_of(s, from));
}

/* ---- options ------------------------------------------------------------------------- */

static enum xm_status
add_attribute(struct links *l, const char *name, struct xm_slice content,
              struct xm_slice *out)
{
    struct xm_jinja_buffer b = {0};
    value v;
    if (content.n == 0)
        return XM_OK;
    xm_strbuf_printf(&b.text, " %s=\"", name);
    xm_jinja_add_escaped(l->r, content, &b);
    xm_strbuf_add(&b.text, "\"");
    XM_TRY(xm_jinja_take_text(l->r, &b, &v));
    *out = v.text;
    return XM_OK;
}

static int
compare_words(const void *a, const void *b)
{
    const struct xm_slice *x = &((const value *)a)->text, *y = &((const value *)b)->text;
    const size_t n = x->n < y->n ? x->n : y->n;
    const int order = memcmp(x->text, y->text, n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* Reads the attribute rel: the words of `rel`, "nofollow" if requested, and "noopener", sorted,
 * each once. */
static enum xm_status
read_rel(struct links *l, value rel, bool nofollow)
{
    const value none[2] = {{0}, {0}};
    const struct xm_jinja_args no_args = {2, 2, (value *)none, NULL};
    struct xm_jinja_buffer b = {0};
    struct xm_jinja_list *all = NULL;
    value words = xm_jinja_text(slice_of(""));
    if (xm_jinja_truth(rel)) {
        if (rel.kind != XM_JINJA_STRING)
            return xm_jinja_fail_not_text(l->r, rel);
        words = rel;
    }
    XM_TRY(xm_jinja_string_split(l->r, words, &no_args, &words));
    XM_TRY(xm_jinja_new_list(l->r, words.list->n + 1 + nofollow, &all));
    if (words.list->n > 0)
        memcpy(all->items, words.list->items, words.list->n * sizeof(value));
    all->items[words.list->n] = xm_jinja_text(slice_of("noopener"));
    if (nofollow)
        all->items[words.list->n + 1] = xm_jinja_text(slice_of("nofollow"));
    qsort(all->items, all->n, sizeof(value), compare_words);
    for (size_t i = 0; i < all->n; i++) {
        if (i > 0 && xm_slice_equal(all->items[i].text, all->items[i - 1].text))
            continue;
        xm_strbuf_add(&b.text, i > 0 ? " " : "");
        xm_jinja_add(l->r, &b, all->items[i].text);
    }
    XM_TRY(xm_jinja_take_text(l->r, &b, &words));
    return add_attribute(l, "rel", words.text, &l->rel);
}

static enum xm_status
read_schemes(struct links *l, value schemes)
{
    if (!xm_jinja_is_given(schemes))
        return XM_OK;
    XM_TRY(xm_jinja_iterate(l->r, schemes, &l->schemes));
    for (size_t i = 0; i < l->schemes->n; i++) {
        const value v = l->schemes->items[i];
        bool is_one = false;
        if (v.kind != XM_JINJA_STRING)
            return xm_jinja_fail_not_text(l->r, v);
        XM_TRY(matches(l, SCHEME, v.text, &is_one));
        if (!is_one)
            return xm_jinja_fail(l->r, "urlize: '%s' is not a valid scheme of an address",
                                 xm_utf8_shown(v.text).text);
    }
    return XM_OK;
}

static enum xm_status
read_options(struct links *l, args *a)
{
    const value target = a->values[2];
    l->trims = xm_jinja_is_given(a->values[0]);
    if (l->trims)
        XM_TRY(xm_jinja_read_size(l->r, a->values[0], &l->trim_limit));
    if (xm_jinja_is_given(target)) {
        struct xm_slice text;
        XM_TRY(xm_jinja_to_text(l->r, target, &text));
        XM_TRY(add_attribute(l, "target", text, &l->target));
    }
    XM_TRY(read_rel(l, a->values[3], xm_jinja_truth(a->values[1])));
    return read_schemes(l, a->values[4]);
}

enum xm_status
xm_jinja_filter_urlize(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct links l = {.r = r};
    value escaped = self;
    enum xm_status status = read_options(&l, a);
    if (status == XM_OK)
        status = xm_jinja_escape(r, self, &escaped);
    if (status == XM_OK)
        status = add_words(&l, escaped.text);
    for (size_t i = 0; i < N_PATTERNS; i++)
        xm_regex_free(l.regex[i]);
    xm_span_list_free(&l.spans);
    if (status == XM_OK)
        return xm_jinja_take_text(r, &l.out, out);
    xm_jinja_buffer_free(&l.out);
    return status;
}
