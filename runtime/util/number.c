/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/number.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t
    c_locale; /* lives as long as the process; 0: there was no memory for it */

static void
make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t
xm_number_locale_begin(void)
{
    pthread_once(&once, make_c_locale);
    return c_locale ? uselocale(c_locale) : (locale_t)0;
}

void
xm_number_locale_end(locale_t before)
{
    if (before)
        uselocale(before);
}

float
xm_parse_float(const char *text, char **end)
{
    locale_t before = xm_number_locale_begin();
    float f = strtof(text, end);
    xm_number_locale_end(before);
    return f;
}

double
xm_parse_double(const char *text, char **end)
{
    locale_t before = xm_number_locale_begin();
    double d = strtod(text, end);
    xm_number_locale_end(before);
    return d;
}
