/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/number.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* lives as long as the process; 0: there was no memory for it */
static locale_t c_locale;

static void
make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Between begin_c and end_c the calling thread reads and writes numbers in the C locale. */
static locale_t
begin_c(void)
{
    pthread_once(&once, make_c_locale);
    return c_locale ? uselocale(c_locale) : (locale_t)0;
}

static void
end_c(locale_t before)
{
    if (before)
        uselocale(before);
}

int
xm_print_v(char *out, size_t n, const char *fmt, va_list ap)
{
    locale_t before = begin_c();
    int printed = vsnprintf(out, n, fmt, ap);
    end_c(before);
    return printed;
}

float
xm_parse_float(const char *text, char **end)
{
    locale_t before = begin_c();
    float f = strtof(text, end);
    end_c(before);
    return f;
}

double
xm_parse_double(const char *text, char **end)
{
    locale_t before = begin_c();
    double d = strtod(text, end);
    end_c(before);
    return d;
}

bool
xm_parse_whole(const char *text, uint64_t *out)
{
    uint64_t n = 0;
    for (const char *p = text; *p; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (*p < '0' || *p > '9' || n > (UINT64_MAX - digit) / 10)
            return false;
        n = 10 * n + digit;
    }
    *out = n;
    return *text != '\0';
}
