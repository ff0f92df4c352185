/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/rate.h"

#include <math.h>
#include <string.h>

#include "runtime/util/number.h"

double
xm_rate(double n, double seconds)
{
    return n > 0.0 && seconds > 0.0 ? n / seconds : 0.0;
}

enum xm_status
xm_rate_read(const char **text, const char *unit, double *out, struct xm_error *err)
{
    enum { SHOWN = 60 };
    const char *at = *text;
    const size_t n = strcspn(at, ",");
    char *end = NULL;
    *out = xm_parse_double(at, &end);
    const char *why = end == at || isnan(*out) ? "is not a number"
                      : isinf(*out)            ? "is too large"
                      : !(*out > 0.0)          ? "is not above 0"
                                               : NULL;
    const size_t digits = (size_t)(end - at), left = n - digits;
    if (!why && left && (left != strlen(unit) || memcmp(end, unit, left) != 0))
        why = "has another unit";
    *text = at + n;
    return why ? xm_fail(err, XM_INVALID, "'%.*s' %s", (int)(n < SHOWN ? n : SHOWN), at,
                         why)
               : XM_OK;
}
