/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/bench_values.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/util/memory.h"
#include "runtime/util/number.h"

enum { NUMBER_CHARS = 12, MAX_SHOWN = 40 };

/* "first", "first-last", "first-last+step", "first-last*factor" */
struct range {
    uint64_t first, last, step;
    bool multiplies;
};

static const char is_too_large[] = "which is too large";

/* Reads a number that ends at one of `ends`, and moves *text to that character. Returns NULL, or
 * what is wrong with the number, as the functions below do. */
static const char *
read_number(const char **text, const char *ends, uint64_t *out)
{
    char digits[NUMBER_CHARS];
    const size_t n = strcspn(*text, ends);
    const bool is_whole = n > 0 && strspn(*text, "0123456789") >= n;
    if (!is_whole)
        return "which is not a whole number";
    if (n >= sizeof(digits))
        return is_too_large;
    memcpy(digits, *text, n);
    digits[n] = '\0';
    *text += n;
    return xm_parse_whole(digits, out) && *out <= XM_CLI_MOST_TOKENS ? NULL
                                                                     : is_too_large;
}

static const char *
read_range(const char **text, struct range *r)
{
    *r = (struct range){.step = 1};
    const char *why = read_number(text, ",-", &r->first);
    r->last = r->first;
    if (why || **text != '-')
        return why;
    ++*text;
    why = read_number(text, ",+*", &r->last);
    r->multiplies = **text == '*';
    if (why || (**text != '+' && **text != '*'))
        return why;
    ++*text;
    return read_number(text, ",", &r->step);
}

/* Refuses ranges that never end or are empty. */
static const char *
check_range(const struct range *r, uint64_t least)
{
    if (r->first < least)
        return "which is too small";
    if (r->last < r->first)
        return "which ends before it begins";
    const bool grows = r->multiplies ? r->step > 1 && r->first > 0 : r->step > 0;
    return grows ? NULL : "which never ends";
}

static bool
add_range(const struct range *r, struct xm_bench_values *out)
{
    for (uint64_t v = r->first; v <= r->last;
         v = r->multiplies ? v * r->step : v + r->step) {
        if (out->n == XM_BENCH_MOST_VALUES)
            return false;
        out->list[out->n++] = v;
    }
    return true;
}

static enum xm_status
read_text(const char *option, const char *text, uint64_t least,
          struct xm_bench_values *out, struct xm_error *err)
{
    struct range r;
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        const char *one = at, *why = read_range(&at, &r);
        if (!why)
            why = check_range(&r, least);
        if (why)
            return xm_fail(err, XM_INVALID,
                           "option %s takes whole numbers from %" PRIu64
                           " to %d, lists of them (1,2) and ranges (1-8, 1-8+2, 1-8*2), "
                           "found '%.*s', %s",
                           option, least, XM_CLI_MOST_TOKENS,
                           (int)(n < MAX_SHOWN ? n : MAX_SHOWN), one, why);
        if (!add_range(&r, out))
            return xm_fail(err, XM_INVALID, "option %s has more than %d values", option,
                           XM_BENCH_MOST_VALUES);
        if (*at == '\0')
            return XM_OK;
    }
}

enum xm_status
xm_bench_values_read(const char *option, const struct xm_cli_texts *texts, uint64_t least,
                     struct xm_bench_values *out, struct xm_error *err)
{
    for (size_t i = 0; i < texts->n; i++)
        XM_TRY(read_text(option, texts->list[i], least, out, err));
    return XM_OK;
}

/* ---- texts ------------------------------------------------------------------------- */

static enum xm_status
add_text(const char *option, const char *text, size_t n, struct xm_bench_texts *out,
         struct xm_error *err)
{
    if (n == 0)
        return xm_fail(err, XM_INVALID, "option %s has an empty value", option);
    if (out->n == XM_BENCH_MOST_VALUES)
        return xm_fail(err, XM_INVALID, "option %s has more than %d values", option,
                       XM_BENCH_MOST_VALUES);
    char *copy = xm_calloc(n + 1, 1);
    if (!copy)
        return xm_no_memory(err, "the values of %s", option);
    memcpy(copy, text, n);
    out->list[out->n++] = copy;
    return XM_OK;
}

enum xm_status
xm_bench_texts_read(const char *option, const struct xm_cli_texts *texts,
                    bool (*is_whole)(const char *text), struct xm_bench_texts *out,
                    struct xm_error *err)
{
    for (size_t i = 0; i < texts->n; i++) {
        const char *at = texts->list[i];
        const bool whole = is_whole && is_whole(at);
        for (size_t n;; at += n + 1) {
            n = whole ? strlen(at) : strcspn(at, ",");
            XM_TRY(add_text(option, at, n, out, err));
            if (at[n] == '\0')
                break;
        }
    }
    return XM_OK;
}

void
xm_bench_texts_free(struct xm_bench_texts *t)
{
    for (size_t i = 0; i < t->n; i++)
        xm_free(t->list[i]);
    *t = (struct xm_bench_texts){0};
}
