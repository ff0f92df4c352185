/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the grammar of the decimal numbers between two bounds, digit by digit.
 *
 * The bounds of a magnitude are strings of digits. While all digits so far equal those of a bound,
 * the next digit must not pass the bound's next one. Once a digit differs, the bound no longer
 * matters. 12.5 <= x:
 *
 *     12  then a fraction of at least .5
 *     1[3-9], [2-9][0-9], or more digits, with any fraction
 *
 * For multiples of m, only the remainder of the digits so far matters: there is a rule for each
 * remainder and number of digits that are left. Multiples of 0.25 are the multiples of 25 with a
 * point before the last two digits; zeros at the end of the fraction may be left out.
 */
#include <string.h>

#include "plugin/text/grammar_parts.h"

enum { MOST_DIGITS = 400, MOST_SCALED = MOST_DIGITS + XM_MOST_PLACES };

/* A magnitude: digits before and behind the point, without redundant zeros. */
struct decimal {
    char whole[MOST_SCALED + 2], fraction[MOST_DIGITS + 2];
};

/* The remaining digits of the bounds; NULL: the bound no longer matters. */
struct bounds {
    const char *low, *high;
    bool low_is_out, high_is_out;
};

static uint32_t
digits(struct xm_grammar_tree *t, char low, char high)
{
    struct xm_class c = {0};
    if (low > high)
        return xm_tree_never(t);
    xm_class_add(&c, (uint32_t)low, (uint32_t)high);
    const uint32_t node = xm_tree_class(t, &c, XM_SPELL_PLAIN);
    xm_class_free(&c);
    return node;
}

static bool
is_zero(const char *s)
{
    return s[strspn(s, "0")] == '\0';
}

static uint32_t
any_digits(struct xm_grammar_tree *t, uint32_t least, uint32_t most)
{
    return xm_tree_repeat(t, digits(t, '0', '9'), least, most);
}

static uint32_t
both(struct xm_grammar_tree *t, uint32_t a, uint32_t b)
{
    return xm_tree_all(t, (uint32_t[]){a, b}, 2);
}

static uint32_t
either(struct xm_grammar_tree *t, uint32_t a, uint32_t b)
{
    return xm_tree_any(t, (uint32_t[]){a, b}, 2);
}

/* ---- multiples -------------------------------------------------------------------- */

/* The multiples to match. A number is read as an integer without its decimal point. */
struct multiples {
    uint32_t of;     /* the factor; 1: any number */
    uint32_t places; /* digits behind the decimal point */
    uint32_t most;   /* most digits that may be left */
    uint32_t *rules; /* owned; [or more?][digits left][remainder]; XM_NOWHERE: not made */
};

static uint32_t
remainder_behind(const struct multiples *m, uint32_t remainder, char digit)
{
    return (remainder * 10 + (uint32_t)(digit - '0')) % m->of;
}

/* Returns whether n more digits can make a multiple of a number with this remainder. */
static bool
has_multiple(const struct multiples *m, uint32_t remainder, uint32_t n)
{
    uint64_t power = 1, left = remainder;
    for (uint32_t i = 0; i < n && power <= m->of; i++) {
        power *= 10;
        left = left * 10 % m->of;
    }
    return power > m->of || (m->of - left) % m->of < power;
}

/* Returns `node`, which matches the last n digits of a number, with the decimal point before it if
 * it belongs there. may_be_zeros: the digits may be left out if they could be zeros. */
static uint32_t
with_point(struct xm_grammar_tree *t, const struct multiples *m, uint32_t remainder,
           uint32_t n, uint32_t node, bool may_be_zeros)
{
    uint64_t left = remainder;
    if (n == 0 || n > m->places)
        return node;
    if (n == m->places)
        node = both(t, xm_tree_text(t, ".", 1), node);
    for (uint32_t i = 0; i < n; i++)
        left = left * 10 % m->of;
    return may_be_zeros && left == 0 ? either(t, node, xm_tree_empty(t)) : node;
}

static uint32_t rest(struct xm_grammar_tree *t, struct multiples *m, uint32_t remainder,
                     uint32_t n, bool or_more);

/* Returns a node for one digit from `low` to `high` and the n digits (or more) that may follow
 * it. */
static uint32_t
digit_and_rest(struct xm_grammar_tree *t, struct multiples *m, uint32_t remainder,
               char low, char high, uint32_t n, bool or_more)
{
    uint32_t list[10], k = 0;
    if (m->of == 1)
        return both(t, digits(t, low, high), rest(t, m, 0, n, or_more));
    for (char d = low; d <= high; d++)
        list[k++] = both(t, digits(t, d, d),
                         rest(t, m, remainder_behind(m, remainder, d), n, or_more));
    return xm_tree_any(t, list, k);
}

/* Returns a node for n more digits (with or_more at least n) that make a multiple of a number with
 * this remainder. With or_more, n >= m->places: the additional digits stand before the decimal
 * point. */
static uint32_t
rest(struct xm_grammar_tree *t, struct multiples *m, uint32_t remainder, uint32_t n,
     bool or_more)
{
    if (m->of == 1 && m->places == 0)
        return any_digits(t, n, or_more ? XM_UNBOUNDED : n);
    if (!or_more && !has_multiple(m, remainder, n))
        return xm_tree_never(t);
    if (!or_more && n == 0)
        return xm_tree_empty(t);
    uint32_t *rule = &m->rules[((or_more ? m->most + 1 : 0) + n) * m->of + remainder];
    if (*rule != XM_NOWHERE || t->failed != XM_OK)
        return t->failed == XM_OK ? xm_tree_rule_ref(t, *rule) : xm_tree_never(t);
    *rule = xm_tree_add_rule(t, "multiples", 9);
    const uint32_t fewer = or_more && n == m->places ? n : n - 1;
    uint32_t node = digit_and_rest(t, m, remainder, '0', '9', fewer, or_more);
    if (!or_more)
        node = with_point(t, m, remainder, n, node, true);
    else if (n == m->places)
        node = either(t, node, rest(t, m, remainder, n, false));
    if (t->failed != XM_OK)
        return xm_tree_never(t);
    t->rules[*rule].node = node;
    t->rules[*rule].is_called = true;
    return xm_tree_rule_ref(t, *rule);
}

/* ---- whole numbers ---------------------------------------------------------------- */

/* Returns a node for the n digits of a number between two bounds of n digits, behind digits with
 * this remainder. */
static uint32_t
same_length(struct xm_grammar_tree *t, struct multiples *m, uint32_t remainder,
            const char *low, const char *high, size_t n)
{
    if ((!low && !high) || n == 0)
        return rest(t, m, remainder, (uint32_t)n, false);
    const char l = low ? *low : '0', h = high ? *high : '9';
    const char *next_low = low ? low + 1 : NULL, *next_high = high ? high + 1 : NULL;
    const uint32_t at_low = remainder_behind(m, remainder, l);
    const uint32_t at_high = remainder_behind(m, remainder, h);
    const bool may_be_zeros = !low || is_zero(low);
    uint32_t list[3], k = 0;
    char from = l, to = h;
    if (l == h) {
        list[0] = both(t, digits(t, l, l),
                       same_length(t, m, at_low, next_low, next_high, n - 1));
        return with_point(t, m, remainder, (uint32_t)n, list[0], may_be_zeros);
    }
    if (low)
        list[k++] =
            both(t, digits(t, l, l), same_length(t, m, at_low, next_low, NULL, n - 1)),
        from++;
    if (high)
        list[k++] =
            both(t, digits(t, h, h), same_length(t, m, at_high, NULL, next_high, n - 1)),
        to--;
    list[k++] = digit_and_rest(t, m, remainder, from, to, (uint32_t)n - 1, false);
    return with_point(t, m, remainder, (uint32_t)n, xm_tree_any(t, list, k),
                      may_be_zeros);
}

static int
compare_whole(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    return n != m ? (n < m ? -1 : 1) : strcmp(a, b);
}

static uint32_t
whole_multiples(struct xm_grammar_tree *t, struct multiples *m, const char *low,
                const char *high)
{
    struct xm_nodes list = {0};
    char least[MOST_SCALED + 2], most[MOST_SCALED + 2];
    const size_t first = strlen(low), last = high ? strlen(high) : first;
    if (high && compare_whole(low, high) > 0)
        return xm_tree_never(t);
    for (size_t n = first; n <= last; n++) {
        memset(least, '0', n);
        least[0] = '1';
        memset(most, '9', n);
        least[n] = most[n] = '\0';
        xm_nodes_add(t, &list,
                     same_length(t, m, 0, n == first ? low : least,
                                 high && n == last ? high : most, n));
    }
    if (!high)
        xm_nodes_add(t, &list, digit_and_rest(t, m, 0, '1', '9', (uint32_t)first, true));
    const uint32_t node = xm_tree_any(t, list.list, list.n);
    xm_nodes_free(&list);
    return node;
}

/* Returns a node for the multiples of `of` from `low` to `high` (NULL: no bound), without leading
 * zeros and with a decimal point before the last `places` digits. Each bound has more than `places`
 * digits. */
static uint32_t
whole(struct xm_grammar_tree *t, const char *low, const char *high, uint32_t of,
      uint32_t places)
{
    const size_t n_low = strlen(low), n_high = high ? strlen(high) : 0;
    struct multiples m = {.of = of ? of : 1,
                          .places = places,
                          .most = (uint32_t)(n_low > n_high ? n_low : n_high)};
    const size_t n = 2 * ((size_t)m.most + 1) * m.of;
    if (m.of > 1 || places > 0) {
        m.rules = xm_malloc(n * sizeof(*m.rules));
        if (!m.rules) {
            t->failed = t->failed == XM_OK ? XM_NO_MEMORY : t->failed;
            return xm_tree_never(t);
        }
        for (size_t i = 0; i < n; i++)
            m.rules[i] = XM_NOWHERE;
    }
    const uint32_t node = whole_multiples(t, &m, low, high);
    xm_free(m.rules);
    return node;
}

/* Adds 1 to a decimal number, in place; there is room for one more digit. */
static void
increase(char *s)
{
    size_t n = strlen(s), i = n;
    while (i > 0 && s[i - 1] == '9')
        s[--i] = '0';
    if (i > 0) {
        s[i - 1]++;
        return;
    }
    memmove(s + 1, s, n + 1);
    s[0] = '1';
}

/* Subtracts 1 from a decimal number that is not "0", in place. */
static void
decrease(char *s)
{
    size_t i = strlen(s);
    while (i > 0 && s[i - 1] == '0')
        s[--i] = '9';
    if (i > 0)
        s[i - 1]--;
    if (s[0] == '0' && s[1])
        memmove(s, s + 1, strlen(s));
}

/* ---- fractions -------------------------------------------------------------------- */

static uint32_t
zeros(struct xm_grammar_tree *t, uint32_t least)
{
    return xm_tree_repeat(t, digits(t, '0', '0'), least, XM_UNBOUNDED);
}

/* Returns whether the fraction may end here. */
static bool
may_stop(const struct bounds *b)
{
    const bool above = !b->low || (is_zero(b->low) && !b->low_is_out);
    const bool below = !b->high || !is_zero(b->high) || !b->high_is_out;
    return above && below;
}

static struct bounds
without_low(struct bounds b)
{
    b.low = NULL;
    return b;
}

static struct bounds
without_high(struct bounds b)
{
    b.high = NULL;
    return b;
}

/* Returns a node for at least `least` (0 or 1) more digits of a fraction within the bounds. */
static uint32_t
fraction(struct xm_grammar_tree *t, struct bounds b, uint32_t least)
{
    if (b.low && is_zero(b.low) && !b.low_is_out)
        b.low = NULL;
    if (!b.low && !b.high)
        return any_digits(t, least, XM_UNBOUNDED);
    if (b.high && is_zero(b.high))
        return b.high_is_out || b.low ? xm_tree_never(t) : zeros(t, least);
    if (!b.high && is_zero(b.low))
        return both(t, any_digits(t, 0, XM_UNBOUNDED),
                    both(t, digits(t, '1', '9'), any_digits(t, 0, XM_UNBOUNDED)));
    const char l = b.low && *b.low ? *b.low : '0', h = b.high ? *b.high : '9';
    struct bounds next = b;
    if (b.low && *b.low)
        next.low++;
    if (b.high)
        next.high++;
    uint32_t list[4], n = 0;
    char from = l, to = h;
    if (b.low && b.high && l == h) {
        list[n++] = both(t, digits(t, l, l), fraction(t, next, 0));
        from++;
    } else {
        if (b.low)
            list[n++] = both(t, digits(t, l, l), fraction(t, without_high(next), 0)),
            from++;
        if (b.high)
            list[n++] = both(t, digits(t, h, h), fraction(t, without_low(next), 0)), to--;
    }
    if (from <= to)
        list[n++] = both(t, digits(t, from, to), any_digits(t, 0, XM_UNBOUNDED));
    if (least == 0 && may_stop(&b))
        list[n++] = xm_tree_empty(t);
    return xm_tree_any(t, list, n);
}

static uint32_t
optional_fraction(struct xm_grammar_tree *t, struct bounds b)
{
    const uint32_t node = both(t, xm_tree_text(t, ".", 1), fraction(t, b, 1));
    return may_stop(&b) ? xm_tree_repeat(t, node, 0, 1) : node;
}

/* ---- magnitudes ------------------------------------------------------------------- */

static bool
read_decimal(const char *s, struct decimal *d)
{
    size_t n = strspn(s, "0123456789");
    const char *f = s[n] == '.' ? s + n + 1 : "";
    const size_t zero = strspn(s, "0");
    const size_t skip = zero < n ? zero : n - 1;
    size_t m = strlen(f);
    while (m > 0 && f[m - 1] == '0')
        m--;
    if (n == 0 || n - skip > MOST_DIGITS || m > MOST_DIGITS)
        return false;
    memcpy(d->whole, s + skip, n - skip);
    d->whole[n - skip] = '\0';
    memcpy(d->fraction, f, m);
    d->fraction[m] = '\0';
    return true;
}

/* Multiplies by 10^places: moves digits from the fraction to the whole part, which has more than
 * `places` digits afterwards. */
static void
scale(struct decimal *d, uint32_t places)
{
    const size_t n = strlen(d->fraction), taken = n < places ? n : places;
    size_t at = strlen(d->whole);
    if (places == 0)
        return;
    memcpy(d->whole + at, d->fraction, taken);
    memmove(d->fraction, d->fraction + taken, n - taken + 1);
    memset(d->whole + at + taken, '0', places - taken);
    d->whole[at + places] = '\0';
}

/* Puts zeros before a number until it has more than `places` digits. */
static void
pad(char *s, uint32_t places)
{
    const size_t n = strlen(s);
    if (n > places)
        return;
    memmove(s + places + 1 - n, s, n + 1);
    memset(s, '0', places + 1 - n);
}

static uint32_t
whole_magnitudes(struct xm_grammar_tree *t, struct decimal *low, struct decimal *high,
                 const struct xm_number_range *r)
{
    scale(low, r->places);
    if (high)
        scale(high, r->places);
    if (low->fraction[0] || r->low_is_out)
        increase(low->whole);
    if (high && !high->fraction[0] && r->high_is_out) {
        if (is_zero(high->whole))
            return xm_tree_never(t);
        decrease(high->whole);
        pad(high->whole, r->places);
    }
    return whole(t, low->whole, high ? high->whole : NULL, r->multiple_of, r->places);
}

/* Returns a node for the numbers of *r without a sign; r->low is not NULL. */
static uint32_t
magnitudes(struct xm_grammar_tree *t, const struct xm_number_range *r)
{
    struct decimal low, high;
    struct bounds none = {0};
    if (!read_decimal(r->low, &low) || (r->high && !read_decimal(r->high, &high))) {
        if (t->failed == XM_OK)
            t->failed = XM_UNSUPPORTED;
        return xm_tree_never(t);
    }
    if (r->whole || r->multiple_of > 0)
        return whole_magnitudes(t, &low, r->high ? &high : NULL, r);
    const struct bounds at_low = {low.fraction, NULL, r->low_is_out, false};
    const struct bounds at_high = {NULL, r->high ? high.fraction : NULL, false,
                                   r->high_is_out};
    const uint32_t low_whole = xm_tree_text(t, low.whole, strlen(low.whole));
    if (r->high && strcmp(low.whole, high.whole) == 0) {
        const struct bounds both_ends = {low.fraction, high.fraction, r->low_is_out,
                                         r->high_is_out};
        return both(t, low_whole, optional_fraction(t, both_ends));
    }
    if (r->high && compare_whole(low.whole, high.whole) > 0)
        return xm_tree_never(t);
    uint32_t list[3], n = 0;
    list[n++] = both(t, low_whole, optional_fraction(t, at_low));
    if (r->high) {
        list[n++] = both(t, xm_tree_text(t, high.whole, strlen(high.whole)),
                         optional_fraction(t, at_high));
        decrease(high.whole);
    }
    increase(low.whole);
    list[n++] = both(t, whole(t, low.whole, r->high ? high.whole : NULL, 1, 0),
                     optional_fraction(t, none));
    return xm_tree_any(t, list, n);
}

/* ---- numbers ---------------------------------------------------------------------- */

static uint32_t
unbounded(struct xm_grammar_tree *t, const struct xm_number_range *r)
{
    const uint32_t sign = xm_tree_repeat(t, xm_tree_text(t, "-", 1), 0, 1);
    struct decimal zero = {"0", ""};
    struct xm_class e = {0}, plus = {0};
    scale(&zero, r->places);
    const uint32_t number =
        both(t, sign, whole(t, zero.whole, NULL, r->multiple_of, r->places));
    if (r->whole || r->multiple_of > 0)
        return number;
    xm_class_add(&e, 'E', 'E');
    xm_class_add(&e, 'e', 'e');
    xm_class_add(&plus, '+', '+');
    xm_class_add(&plus, '-', '-');
    const uint32_t exponent = xm_tree_all(
        t,
        (uint32_t[]){xm_tree_class(t, &e, XM_SPELL_PLAIN),
                     xm_tree_repeat(t, xm_tree_class(t, &plus, XM_SPELL_PLAIN), 0, 1),
                     any_digits(t, 1, 2)},
        3);
    xm_class_free(&e);
    xm_class_free(&plus);
    return xm_tree_all(t,
                       (uint32_t[]){number, optional_fraction(t, (struct bounds){0}),
                                    xm_tree_repeat(t, exponent, 0, 1)},
                       3);
}

uint32_t
xm_tree_numbers(struct xm_grammar_tree *t, const struct xm_number_range *r)
{
    const bool low_is_negative = !r->low || r->low[0] == '-';
    const bool high_is_negative = r->high && r->high[0] == '-';
    uint32_t positive = xm_tree_never(t), negative = xm_tree_never(t);
    if (!r->low && !r->high)
        return unbounded(t, r);
    if (!high_is_negative) {
        struct xm_number_range p = *r;
        if (low_is_negative) {
            p.low = "0";
            p.low_is_out = false;
        }
        positive = magnitudes(t, &p);
    }
    if (low_is_negative) {
        const struct xm_number_range n = {
            .low = high_is_negative ? r->high + 1 : "0",
            .high = r->low ? r->low + 1 : NULL,
            /* -0 is 0 */
            .low_is_out = high_is_negative ? r->high_is_out
                                           : r->high && r->high_is_out &&
                                                 is_zero(r->high + strspn(r->high, "0.")),
            .high_is_out = r->low_is_out,
            .whole = r->whole,
            .multiple_of = r->multiple_of,
            .places = r->places};
        negative = both(t, xm_tree_text(t, "-", 1), magnitudes(t, &n));
    }
    return either(t, positive, negative);
}
